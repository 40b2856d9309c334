"""Jobs of PBS, Grid Engine and LSF on hosts behind real SSH servers. The batch systems themselves are stand-ins: only their
variables and files are there."""

import pytest
from remote_jobs import run
from testbed import HOME, Testbed

SHOW = ["sh", "-c", "echo $RUNJOB_RANK of $RUNJOB_SIZE on $(hostname) $PBS_TASKNUM"]


@pytest.fixture(scope="module")
def bed():
    with Testbed(hosts=2) as bed:
        bed.head.write(f"{HOME}/pbs", "s2\ns1\ns2\n")
        bed.head.write(f"{HOME}/pe", "s2 2 all.q@s2 UNDEFINED\ns1 1 all.q@s1 UNDEFINED\n")
        yield bed


PBS = {"PBS_JOBID": "7.s0", "PBS_NODEFILE": f"{HOME}/pbs", "PBS_TASKNUM": "1"}
GRID_ENGINE = {"JOB_ID": "8", "PE_HOSTFILE": f"{HOME}/pe", "NSLOTS": "3"}
LSF = {"LSB_JOBID": "9", "LSB_MCPU_HOSTS": "s2 2 s1 1"}


def lines_of(done):
    assert (done.returncode, done.stderr) == (0, "")
    return sorted(line.partition("<stdout>:")[2].rstrip() for line in done.stdout.splitlines())


@pytest.mark.parametrize("variables", [PBS, GRID_ENGINE, LSF], ids=["pbs", "grid_engine", "lsf"])
def test_the_ranks_start_on_the_hosts_of_the_job(bed, variables):
    done = run(bed, *SHOW, variables=variables)
    assert lines_of(done) == ["0 of 3 on s2", "1 of 3 on s2", "2 of 3 on s1"]


def test_options_beat_the_batch_system(bed):
    assert lines_of(run(bed, "-np", "1", *SHOW, variables=PBS)) == ["0 of 1 on s2"]
    assert lines_of(run(bed, "-H", "s1", *SHOW, variables=PBS)) == ["0 of 1 on s1"]


def test_the_map_shows_the_jobs_hosts_before_anything_starts(bed):
    shown = run(bed, "--dry-run", "true", variables=LSF).stdout
    assert shown.startswith("3 ranks on 2 hosts, mapped by slot, bound to none:\n  s2: ranks 0, 1 in 2 slots")


def test_an_elastic_job_begins_on_the_jobs_hosts(bed):
    done = run(bed, "--min-np", "1", *SHOW, variables=GRID_ENGINE)
    assert lines_of(done) == ["0 of 3 on s2", "1 of 3 on s2", "2 of 3 on s1"]


def test_a_broken_list_ends_the_job_before_anything_starts(bed):
    bed.head.write(f"{HOME}/broken", "s1\ns2 4\n")
    done = run(bed, *SHOW, variables={**PBS, "PBS_NODEFILE": f"{HOME}/broken"})
    assert done.returncode == 2
    assert done.stderr == f"runjob: error: PBS_NODEFILE {HOME}/broken: line 2, column 4: expected the end of the line, found '4'\n"
    done = run(bed, *SHOW, variables={"LSB_JOBID": "9"})
    assert done.stderr == (
        "runjob: error: LSF job 9 names no hosts: LSB_MCPU_HOSTS is not set; pass it on to runjob, or name the hosts with -H\n"
    )
