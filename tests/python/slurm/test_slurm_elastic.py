"""Elastic jobs inside of a SLURM allocation: they shrink, and spares on further nodes take lost ranks' places."""

import contextlib
import pathlib
import re
import signal
import sys

import pytest
from slurm_jobs import ROOT, RUNJOB, Running, ours_on, output_of, salloc, submit, wait_for, wait_until_gone
from testbed import HOME, eventually
from testbed.slurm import Slurm

ELASTIC = pathlib.Path(__file__).parents[1] / "elastic"
VARIABLES = {"PYTHONPATH": str(ROOT / "python"), "OMP_NUM_THREADS": "1"}


def test_a_spare_on_a_further_node_replaces_a_lost_rank(slurm):
    # No process is started again, so the second rank can only be the spare, whose node had no rank at the start.
    options = ("-np", 2, "--min-np", 2, "--spares", 1, "--rank-restarts", 0)
    job = salloc(slurm, "-N3 -n3 --no-kill", *options, sys.executable, ELASTIC / "training.py", "1", variables=VARIABLES)
    assert job.returncode == 0, job.stderr
    assert sorted(line.partition(":")[2] for line in job.stdout.splitlines()) == [f"{rank} 2 20 40 [2]" for rank in range(2)]
    assert re.search(r"rank 1 on s2 was killed by signal 9 .*\. The job goes on with 2 ranks \(generation 1\)", job.stderr)
    wait_until_gone(slurm)


def test_the_others_go_on_when_a_node_fails(slurm):
    command = (RUNJOB, "-np", 2, "--min-np", 1, sys.executable, ELASTIC / "sizes.py", "2,1")
    with Running(slurm, "salloc", "--quiet", "-N2", "-n2", "--no-kill", *command, variables=VARIABLES) as job:
        job.wait_for_lines(1)
        for process in slurm.nodes[1].processes():
            if process.name.startswith("runjob-") or process.has_mark("JOB_TEST_MARK=1"):
                with contextlib.suppress(ProcessLookupError):  # ended with its guard
                    process.kill(signal.SIGKILL)
        status, output, errors = job.finish()
        assert status == 0, errors
        assert "process 0 on s1: rank 0 of 1, [2, 1]" in output
        assert re.search(r"The job goes on with 1 rank \(generation 1\), which stood still for .* s", errors)
        wait_until_gone(slurm)


def test_a_host_that_is_no_node_of_the_job_is_refused(slurm):
    command = (RUNJOB, "-np", 1, "--min-np", 1, sys.executable, ELASTIC / "sizes.py", "1,2")
    with Running(slurm, "salloc", "--quiet", "-N2", "-n2", *command, variables=VARIABLES) as job:
        job.wait_for_lines(1)
        name = str(job.launcher().pid)
        for words, message in (
            (["--add", "s9:1"], "--add: s9 cannot join: it is no node of this SLURM job, which cannot grow; --spares keeps nodes ready"),
            (["-np", "3"], "3 ranks need 3 slots, and the job's hosts have 2 slots; add slots first: runjob resize JOB --add s1:2"),
        ):
            done = slurm.run([RUNJOB, "resize", name, *words])
            assert (done.returncode, done.stderr) == (2, f"runjob: error: resize: {message}\n")
        for words in (["--remove", "s2"], ["--add", "s2:1"], ["-np", "2"]):
            done = slurm.run([RUNJOB, "resize", name, *words])
            assert done.returncode == 0, done.stderr
        status, output, errors = job.finish()
        assert status == 0, errors
        assert "process 0 on s1: rank 0 of 2, [1, 2]" in output
        wait_until_gone(slurm)


def test_a_job_that_is_requeued_goes_on_from_its_last_commit():
    # SLURM starts a requeued job when the credentials of its first start have expired, by default after two minutes.
    with Slurm(nodes=2, config="AuthInfo=cred_expire=10") as slurm:
        program = f"{sys.executable} {ELASTIC / 'stored' / 'stored_training.py'} 150 slow"
        variables = " ".join(f"{name}={value}" for name, value in {**VARIABLES, "JOB_TEST_MARK": "1"}.items())
        script = f"export {variables}\n{RUNJOB} -np 2 --min-np 1 --commit-dir {HOME}/commits --commit-interval 0 {program}"
        job = submit(slurm, "-N2 -n2 --requeue --open-mode=append", script)
        eventually(lambda: "mark" in output_of(slurm, job), "some steps have been done")
        slurm.run(["scontrol", "requeue", job], check=True)
        wait_for(slurm, job)
        output = output_of(slurm, job)
        starts = [int(step) for step in re.findall(r"^\[0\]<stdout>:from (\d+)$", output, re.MULTILINE)]
        assert len(starts) == 2 and starts[0] == 0 and 20 <= starts[1] < 150, output
        assert output.count("<stdout>:150 [300.0, 300.0, 300.0]\n") == 2, output
        wait_until_gone(slurm)


def wait_for_size(job, size):
    """Reads the job's output up to the line with its size."""
    for line in iter(job.process.stdout.readline, ""):
        if line.rstrip().endswith(f"size {size}"):
            return
    raise AssertionError(f"the job never had {size} ranks: {job.process.stderr.read()}")


@pytest.mark.parametrize("change", ["NumNodes=2", "NodeList=s1,s2"])
def test_the_others_go_on_when_a_node_is_given_back(slurm, change):
    command = (RUNJOB, "--min-np", 1, sys.executable, ELASTIC / "sizes.py", "3,2")
    with Running(slurm, "salloc", "--quiet", "-N3", "-n3", "--no-kill", *command, variables=VARIABLES) as job:
        wait_for_size(job, 3)
        (number,) = slurm.jobs()
        slurm.run(["scontrol", "update", f"JobId={number}", change], check=True)
        status, output, errors = job.finish()
        assert status == 0, errors
        # Which of the two is rank 0 depends on which of them made the newest commit before it learned of the loss.
        ends = sorted(re.findall(r"process (\d) on (s\d): rank (\d) of 2, \[3, 2\]", output))
        assert [end[:2] for end in ends] == [("0", "s1"), ("1", "s2")] and {end[2] for end in ends} == {"0", "1"}
        reason = r"lost the agent on s3: .*; srun: error: s3: task 2: Killed"
        consequence = r"The job goes on with 2 ranks \(generation 1\), which stood still for .* s; no new process starts on s3\."
        assert re.search(rf"{reason}\. {consequence}\n", errors), errors
        wait_until_gone(slurm)


def set_down(slurm, name):
    slurm.run(["scontrol", "update", f"NodeName={name}", "State=DOWN", "Reason=test"], user="root", check=True)


def test_the_others_go_on_when_slurm_sets_a_node_down(slurm):
    """It comes back by itself, because its slurmd lives: it is idle for other jobs."""
    command = (RUNJOB, "--min-np", 1, sys.executable, ELASTIC / "sizes.py", "2,1")
    with Running(slurm, "salloc", "--quiet", "-N2", "-n2", "--no-kill", *command, variables=VARIABLES) as job:
        wait_for_size(job, 2)
        set_down(slurm, "s2")
        status, output, errors = job.finish()
        assert status == 0, errors
        assert "process 0 on s1: rank 0 of 1, [2, 1]" in output
        assert "srun: error: Node failure on s2" in errors
        assert re.search(r"lost the agent on s2: .*\. The job goes on with 1 rank \(generation 1\), .* s; no new process starts on s2\.\n", errors)
        wait_until_gone(slurm)


@pytest.mark.parametrize("end", ["scancel", "time limit"])
def test_an_elastic_job_that_slurm_ends_has_ended(slurm, end):
    """No rank is replaced, and the ranks get SIGTERM."""
    with Running(slurm, "salloc", "--quiet", "-N2", "-n2", "--no-kill", "--time=1", RUNJOB, "--min-np", 1, "--grace-period", 2,
                 sys.executable, ELASTIC / "sizes.py", "2,1", variables=VARIABLES) as job:  # fmt: skip
        wait_for_size(job, 2)
        (number,) = slurm.jobs()
        command = ["scancel", number] if end == "scancel" else ["scontrol", "update", f"JobId={number}", "EndTime=now+1"]
        slurm.run(command, check=True)
        status, _, errors = job.finish(timeout=180)
        assert status != 0
        assert "generation" not in errors
        wait_until_gone(slurm)
