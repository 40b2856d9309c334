"""`srun --mpi=pmix COMMAND` and `--mpi=pmi2`, without runjob: the tasks become one job by themselves."""

import pytest
from plain_rank import PRELUDE, PYTHON, TWICE
from slurm_jobs import wait_until_idle


@pytest.fixture(autouse=True)
def idle_nodes(slurm):
    """SLURM then gives the first ones to a job."""
    wait_until_idle(slurm)


def srun(slurm, options, code, **more):
    return slurm.run(["srun", "--quiet", *options.split(), PYTHON, "-c", PRELUDE + code], **more)


@pytest.mark.parametrize("mpi", ["pmix", "pmi2"])
def test_tasks_are_a_job_again_and_again(slurm, mpi):
    done = srun(slurm, f"--mpi={mpi} -N2 -n3 -m cyclic", TWICE)
    assert (done.returncode, done.stderr) == (0, "")
    places = ["[0, 3, 0, 2, 0, 2] 6.0", "[1, 3, 0, 1, 1, 2] 6.0", "[2, 3, 1, 2, 0, 1] 6.0"]
    assert sorted(done.stdout.splitlines()) == sorted(places * 2)


@pytest.mark.parametrize("mpi, who", [("pmix", "rank 2 has not come"), ("pmi2", "not all 3 ranks have come")])
def test_a_task_that_does_not_come_is_an_error(slurm, mpi, who):
    code = """
if os.environ["SLURM_PROCID"] == "2":
    time.sleep(6)
    os._exit(0)
try:
    join()
except RuntimeError as error:
    say(error)
    os._exit(0)
"""
    done = srun(slurm, f"--mpi={mpi} -N2 -n3", code, variables={"RUNJOB_START_TIMEOUT": "1"})
    assert done.stdout == f"init(): {who} in 1 s; srun --mpi={mpi} has started 3 ranks, and each has to call init()\n" * 2, done.stderr


@pytest.mark.parametrize("mpi", ["pmix", "pmi2"])
def test_a_task_that_is_killed_is_named_to_the_others(slurm, mpi):
    code = """
try:
    join()  # which others may still be in when that one is killed
    if place()[0] == 1:
        os.kill(os.getpid(), 9)
    total(1)
except RuntimeError as error:
    say(error)
    time.sleep(1)
"""
    done = srun(slurm, f"--mpi={mpi} -N2 -n3 --kill-on-bad-exit=0", code)
    assert done.returncode != 0
    assert done.stdout.count("rank 1 on s1 is gone: it ended or lost its connection without calling shutdown()\n") == 2, done.stderr


def test_tasks_without_pmi_are_alone_and_one_says_so(slurm):
    done = srun(slurm, "--mpi=none -N2 -n3", "join()\nsay(place()[:2])")
    assert done.stdout == "[0, 1]\n" * 3
    assert done.stderr == (
        "runjob: warning: srun has started 3 tasks without PMIx or PMI, so that each of them is a job of its own, of size 1; use srun "
        "--mpi=pmix or srun --mpi=pmi2, or srun runjob\n"
    )
