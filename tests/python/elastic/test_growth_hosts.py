"""Elastic jobs whose hosts come and go: a discovery script, a hostfile and `runjob resize`, over real sshd."""

import pathlib
import re
import sys

from jobs import by_rank
from remote_jobs import ROOT, RUNJOB, Running
from testbed import Testbed

SIZES = pathlib.Path(__file__).with_name("sizes.py")
VARIABLES = {"PYTHONPATH": str(ROOT / "python"), "OMP_NUM_THREADS": "1"}


def write(bed, path, text):
    """Puts a new file in the old one's place, as editors do."""
    done = bed.head.run(["sh", "-c", f"cat > {path}.new && mv {path}.new {path}"], input=text)
    assert done.returncode == 0, done.stderr


def wait_for_size(job, size):
    """Reads the job's output up to the line that tells its size."""
    for line in iter(job.process.stdout.readline, ""):
        if line.rstrip().endswith(f"size {size}"):
            return
    raise AssertionError(f"the job never had {size} ranks: {job.process.stderr.read()}")


def last_lines(output):
    return sorted(lines[-1] for lines in by_rank(output).values())


def test_hosts_of_a_discovery_script_join_and_leave():
    with Testbed(hosts=3) as bed:
        write(bed, "/tmp/hosts", "s1\n\ns2:1\n")
        command = (sys.executable, str(SIZES), "2,3,2")
        options = ("--host-discovery-script", "cat /tmp/hosts", "-np", "2", "--min-np", "1", "--max-np", "3")
        with Running(bed, *options, *command, env=VARIABLES) as job:
            wait_for_size(job, 2)
            write(bed, "/tmp/hosts", "s1\ns2:1\nnowhere:1\ns3\n")
            wait_for_size(job, 3)
            write(bed, "/tmp/hosts", "s2\ns3\n")
            status, output, errors = job.finish()
            assert status == 0, errors
            assert last_lines(output) == ["process 1 on s2: rank 0 of 2, [2, 3, 2]", "process 3 on s3: rank 1 of 2, [2, 3, 2]"]
            assert re.search(r"generation 1: 3 ranks after .* s: the hosts have changed: rank 2 on s3 has come", errors)
            assert re.search(r"generation 2: 2 ranks after .* s: the hosts have changed: rank 0 on s1 has left", errors)
            assert re.search(r"warning: nowhere cannot join: .*; nowhere is excluded for ever", errors)
            job.wait_until_gone(*bed.hosts)


def test_a_host_that_was_cut_off_comes_back_after_its_cooldown():
    with Testbed(hosts=2) as bed:
        options = ("-H", "s1,s2", "--min-np", "1", "--grace-period", "1", "--blacklist-cooldown-range", "1", "3")
        with Running(bed, *options, sys.executable, str(SIZES), "2,1,2", env=VARIABLES) as job:
            wait_for_size(job, 2)
            bed.hosts[1].cut_network()
            wait_for_size(job, 1)
            bed.hosts[1].restore_network()
            status, output, errors = job.finish(timeout=120)
            assert status == 0, errors
            assert last_lines(output)[0].startswith("process 0 on s1: rank 0 of 2, [2, 1, 2]")
            assert "s2 is excluded for 1 s" in errors
            assert re.search(r"2 ranks after .* s: the hosts have changed: rank 1 on s2 has come", errors)


def test_edits_of_the_hostfile_and_requests_of_the_user_change_the_hosts():
    with Testbed(hosts=3) as bed:
        write(bed, "/tmp/hosts", "s1 slots=1\n")
        options = ("--hostfile", "/tmp/hosts", "-np", "1", "--min-np", "1", "--max-np", "2")
        with Running(bed, *options, sys.executable, str(SIZES), "1,2,3,2", env=VARIABLES) as job:
            wait_for_size(job, 1)
            write(bed, "/tmp/hosts", "s1 slots=1\ns2 slot=1\n")
            for line in iter(job.process.stderr.readline, ""):
                if "the hosts stay as they are" in line:
                    break
            assert "line 2" in line
            write(bed, "/tmp/hosts", "s1 slots=1\ns2 slots=1\n")
            wait_for_size(job, 2)

            def resize(*arguments):
                return bed.head.run([RUNJOB, "resize", str(job.process.pid), *arguments])

            launcher = resize("-np", "x")
            assert launcher.returncode == 2
            done = bed.head.run(["sh", "-c", "ls /tmp/runjob-*/"])
            job_id = done.stdout.split(".")[0]
            done = bed.head.run([RUNJOB, "resize", job_id, "--add", "s3:1"])
            assert done.stdout == "s3 added; the job has 2 ranks and may have 2, and its hosts have 3 slots; runjob resize JOB -np N lets it have more\n"
            done = bed.head.run([RUNJOB, "resize", job_id, "-np", "0"])
            assert done.returncode == 2
            done = bed.head.run([RUNJOB, "resize", job_id, "--remove", "s9"])
            assert (done.returncode, done.stderr) == (2, "runjob: error: resize: --remove: s9 is no host of the job; its hosts are s1, s2, s3\n")
            done = bed.head.run([RUNJOB, "resize", job_id, "-np", "3"])
            assert done.returncode == 0, done.stderr
            wait_for_size(job, 3)
            done = bed.head.run([RUNJOB, "resize", job_id, "--remove", "s2"])
            assert done.returncode == 0, done.stderr
            status, output, errors = job.finish()
            assert status == 0, errors
            assert last_lines(output) == ["process 0 on s1: rank 0 of 2, [1, 2, 3, 2]", "process 2 on s3: rank 1 of 2, [1, 2, 3, 2]"]
