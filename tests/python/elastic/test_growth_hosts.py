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


def job_id(bed):
    """Of the only job that runs."""
    return bed.head.run(["sh", "-c", "ls /tmp/runjob-*/"]).stdout.split(".")[0]


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
            assert re.search(r"the hosts have changed: rank 2 on s3 has come\. The job goes on with 3 ranks \(generation 1\)", errors)
            assert re.search(r"the hosts have changed: rank 0 on s1 has left\. The job goes on with 2 ranks \(generation 2\)", errors)
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
            assert "no new process starts on s2 for 1 s." in errors
            assert re.search(r"the hosts have changed: rank 1 on s2 has come\. The job goes on with 2 ranks", errors)


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
            name = job_id(bed)
            done = bed.head.run([RUNJOB, "resize", name, "--add", "s3:1"])
            assert done.stdout == "s3 added; the job has 2 ranks and may have 2, and its hosts have 3 slots; runjob resize JOB -np N lets it have more\n"
            done = bed.head.run([RUNJOB, "resize", name, "-np", "0"])
            assert done.returncode == 2
            done = bed.head.run([RUNJOB, "resize", name, "--remove", "s9"])
            assert (done.returncode, done.stderr) == (2, "runjob: error: resize: --remove: s9 is no host of the job; its hosts are s1, s2, s3\n")
            done = bed.head.run([RUNJOB, "resize", name, "-np", "3"])
            assert done.returncode == 0, done.stderr
            wait_for_size(job, 3)
            done = bed.head.run([RUNJOB, "resize", name, "--remove", "s2"])
            assert done.returncode == 0, done.stderr
            status, output, errors = job.finish()
            assert status == 0, errors
            assert last_lines(output) == ["process 0 on s1: rank 0 of 2, [1, 2, 3, 2]", "process 2 on s3: rank 1 of 2, [1, 2, 3, 2]"]


def test_a_host_that_cannot_reach_the_ranks_is_refused_and_is_not_excluded():
    unreachable = "s2 cannot join: the ranks on s1 are reached at 127.0.0.1 only; start the job with --network-interfaces NAME, a hostfile or a discovery script, so that other hosts can join it\n"
    with Testbed(hosts=2) as bed:
        with Running(bed, "-H", "s1:1", "--min-np", "1", sys.executable, str(SIZES), "1,2", env=VARIABLES) as job:
            wait_for_size(job, 1)

            def resize(*arguments):
                return bed.head.run([RUNJOB, "resize", job_id(bed), *arguments])

            done = resize("--add", "s2:1")
            assert (done.returncode, done.stdout, done.stderr) == (2, "", f"runjob: error: resize: --add: {unreachable}")
            done = resize("-np", "2")
            assert (done.returncode, done.stderr) == (
                2, "runjob: error: resize: 2 ranks need 2 slots, and the job's hosts have 1 slot; add slots first: runjob resize JOB --add s1:2\n",
            )  # fmt: skip
            assert resize("--add", "s1:2").stdout == (
                "s1 added; the job has 1 rank and may have 1, and its hosts have 2 slots; runjob resize JOB -np N lets it have more\n"
            )
            assert resize("-np", "2").stdout == "the job has 1 rank and may have 2, and its hosts have 2 slots\n"
            status, output, errors = job.finish()
            assert status == 0, errors
            assert last_lines(output) == ["process 0 on s1: rank 0 of 2, [1, 2]", "process 1 on s1: rank 1 of 2, [1, 2]"]
            assert "s2" not in errors

        write(bed, "/tmp/hosts", "s1:1\n")  # the same by a list, whose ranks use loopback since nothing else is allowed
        options = ("--host-discovery-script", "cat /tmp/hosts", "-np", "1", "--max-np", "2", "--network-interfaces", "lo")
        with Running(bed, *options, sys.executable, str(SIZES), "1,2", env=VARIABLES) as job:
            wait_for_size(job, 1)
            write(bed, "/tmp/hosts", "s1:1\ns2:1\n")
            assert job.process.stderr.readline() == f"runjob: warning: {unreachable}"
            write(bed, "/tmp/hosts", "s1:2\ns2:1\n")
            status, output, errors = job.finish()
            assert status == 0, errors
            assert last_lines(output) == ["process 0 on s1: rank 0 of 2, [1, 2]", "process 1 on s1: rank 1 of 2, [1, 2]"]
            assert "s2" not in errors
            job.wait_until_gone(*bed.hosts)


def test_the_last_host_with_ranks_is_not_removed():
    with Testbed(hosts=2) as bed:
        options = ("-H", "s1:1", "--min-np", "1", "--network-interfaces", "eth0")
        with Running(bed, *options, sys.executable, str(SIZES), "1,2,1", env=VARIABLES) as job:
            wait_for_size(job, 1)

            def resize(*arguments):
                return bed.head.run([RUNJOB, "resize", job_id(bed), *arguments])

            assert resize("--add", "nowhere:1,s2:1").returncode == 0
            done = resize("--remove", "s1")
            assert (done.returncode, done.stderr) == (
                2,
                "runjob: error: resize: --remove: all ranks run on s1, and the job's state is lost with them; remove it when "
                "nowhere or s2 has a rank\n",
            )
            assert resize("-np", "2").returncode == 0
            wait_for_size(job, 2)
            done = resize("--remove", "s1")
            assert done.returncode == 0, done.stderr
            assert done.stdout.startswith("s1 removed; the job has 2 ranks and may have 2, and its hosts have 1 slot (no process starts on nowhere)")
            status, output, errors = job.finish()
            assert status == 0, errors
            assert "on s2: rank 0 of 1, [1, 2, 1]" in output, output
            job.wait_until_gone(*bed.hosts)
