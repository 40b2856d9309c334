"""How jobs inside of a SLURM allocation end: by themselves, by SLURM, and by faults; and what SLURM is told."""

import os
import re
import shlex
import signal

import pytest
from running_job import SLEEP, STUBBORN
from slurm_jobs import PYTHON, ROOT, RUNJOB, Running, ours_on, output_of, python, salloc, state_of, submit, wait_for, wait_until_gone, wait_until_idle
from testbed import HOME, eventually
from testbed.slurm import Slurm

# A rank whose work is damaged when it is told to save it while it does. A signal may come in the middle of its answer to another,
# and print() is not made for that.
SAVES = """
import os, signal, sys, time
told = []
def say(text):
    os.write(1, text.encode() + b'\\n')
def save(*_):
    told.append(None)
    say(f'told {len(told)} times')
    if len(told) == 1:
        time.sleep(1.5)
        say('saved')
        sys.exit(0)
signal.signal(signal.SIGTERM, save)
say('ready')
while True: time.sleep(0.1)
"""


def submit_ranks_that_save(slurm, options="-N2 -n2"):
    """The id of a job whose two ranks run."""
    job = submit(slurm, options, "exec " + shlex.join([RUNJOB, *python(SAVES)]))
    eventually(lambda: output_of(slurm, job).count(":ready") == 2, "both ranks run")
    return job


def check_saved_once(output):
    assert (output.count(":saved"), output.count(":told 1 times")) == (2, 2), output
    assert ":told 2 times" not in output


# By themselves, and by their user


def test_the_first_failure_ends_the_others(slurm):
    code = "import os, sys, time\nif os.environ['RUNJOB_RANK'] == '3': sys.exit('wrong\\nreason')\ntime.sleep(600)"
    done = salloc(slurm, "-N2 --ntasks-per-node=2", *python(code))
    assert done.returncode == 1
    assert "runjob: error: rank 3 on s2 (pid" in done.stderr
    assert "reason" in done.stderr
    wait_until_gone(slurm)


def test_the_status_reaches_slurm(slurm):
    job = submit(slurm, "-N2 -n2", f"{RUNJOB} sh -c 'exit $((RUNJOB_RANK * 7))'")
    wait_for(slurm, job)
    state = state_of(slurm, job)
    assert (state["JobState"], state["ExitCode"]) == ("FAILED", "7:0")


def test_a_rank_that_ignores_sigterm_is_killed_after_the_grace_period(slurm):
    with Running(slurm, "salloc", "-N2", "-n2", RUNJOB, "--grace-period", "1", *python(STUBBORN)) as job:
        job.wait_for_lines(2)
        job.launcher().kill(signal.SIGINT)
        assert job.finish()[0] == 130
    wait_until_gone(slurm)


@pytest.mark.parametrize("options", [["--signal=USR1"], ["--signal=USR1", "--batch"], ["--signal=HUP"], ["--signal=INT"]])
def test_signals_through_slurm_reach_every_rank_once(slurm, options):
    code = """
import signal, sys, time
def on_signal(*_):
    print('signal')
for number in (signal.SIGUSR1, signal.SIGHUP, signal.SIGINT):
    signal.signal(number, on_signal)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
print('ready')
while True:
    time.sleep(0.1)
"""
    job = submit(slurm, "-N2 --ntasks-per-node=2", "exec " + shlex.join([RUNJOB, *python(code)]))
    eventually(lambda: output_of(slurm, job).count(":ready") == 4, "all ranks run")
    slurm.run(["scancel", *options, job], check=True)
    eventually(lambda: output_of(slurm, job).count(":signal") == 4, "all ranks have it")
    slurm.run(["scancel", job], check=True)
    wait_for(slurm, job)
    assert output_of(slurm, job).count(":signal") == 4
    wait_until_gone(slurm)


# By SLURM


def test_scancel_gives_each_rank_one_signal_and_the_grace_period(slurm):
    job = submit_ranks_that_save(slurm)
    slurm.run(["scancel", job], check=True)
    wait_for(slurm, job)
    check_saved_once(output_of(slurm, job))
    assert state_of(slurm, job)["JobState"] == "CANCELLED"
    wait_until_gone(slurm)


def test_a_signal_for_the_batch_script_alone_reaches_each_rank_once(slurm):
    job = submit_ranks_that_save(slurm)
    slurm.run(["scancel", "--batch", "--signal=TERM", job], check=True)
    wait_for(slurm, job)
    check_saved_once(output_of(slurm, job))
    state = state_of(slurm, job)
    assert (state["JobState"], state["ExitCode"]) == ("FAILED", "143:0")
    wait_until_gone(slurm)


def test_a_step_that_is_told_to_end_ends_the_job(slurm):
    with Running(slurm, "salloc", "-N2", "-n2", RUNJOB, *python(SAVES)) as job:
        job.wait_for_lines(2)
        (allocation,) = slurm.jobs()
        slurm.run(["scancel", "--signal=TERM", f"{allocation}.0"], check=True)
        status, output, errors = job.finish()
        assert status == 143, errors
        check_saved_once(output)
        assert errors.count("runjob: warning: SLURM ends the job: it has sent SIGTERM to its processes on s") == 1
    wait_until_gone(slurm)


def test_where_slurm_signals_process_groups_the_ranks_get_theirs_from_runjob():
    with Slurm(nodes=2, cpus=1, config="ProctrackType=proctrack/pgid\n") as slurm:
        job = submit_ranks_that_save(slurm)
        slurm.run(["scancel", job], check=True)
        wait_for(slurm, job)
        check_saved_once(output_of(slurm, job))
        wait_until_gone(slurm)


def test_the_time_limit_gives_the_ranks_their_grace_period(slurm):
    """SLURM itself sends SIGTERM twice then, so a rank must bear that; --signal, below, is better."""
    job = submit_ranks_that_save(slurm, "-N2 -n2 --time=1")
    slurm.run(["scontrol", "update", f"JobId={job}", "EndTime=now+1"], check=True)
    eventually(lambda: job not in slurm.jobs(), "the job has ended", limit=120)
    output = output_of(slurm, job)
    assert output.count(":saved") == 2, output
    assert state_of(slurm, job)["JobState"] == "TIMEOUT"
    wait_until_gone(slurm)


def test_the_batch_script_gives_each_rank_a_minute_before_the_time_limit(slurm):
    script = ROOT / "packaging" / "slurm" / "train.sbatch"
    slurm.head.write(f"{HOME}/train.py", SAVES)
    slurm.head.write(f"{HOME}/bin/python", f'#!/bin/sh\nexec {PYTHON} -u "$@"\n', 0o755)
    path = os.pathsep.join([f"{HOME}/bin", RUNJOB.rpartition("/")[0], "/usr/bin", "/bin"])
    done = slurm.run(["sbatch", "--parsable", "--output=%j.out", str(script)], variables={"PATH": path}, check=True)
    job = done.stdout.strip()
    eventually(lambda: output_of(slurm, job).count(":ready") == 8, "two nodes have four ranks each")
    slurm.run(["scontrol", "update", f"JobId={job}", "EndTime=now+61"], check=True)
    eventually(lambda: job not in slurm.jobs(), "the job has ended", limit=120)
    output = output_of(slurm, job)
    assert (output.count(":saved"), output.count(":told 1 times"), output.count(":told 2 times")) == (8, 8, 0), output
    state = state_of(slurm, job)
    assert (state["JobState"], state["ExitCode"]) == ("FAILED", "143:0")
    wait_until_gone(slurm)


# Faults


def test_nothing_is_left_when_runjob_is_killed(slurm):
    with Running(slurm, "salloc", "-N3", "-n3", RUNJOB, "--grace-period", "1", *python(STUBBORN)) as job:
        job.wait_for_lines(3)
        job.launcher().kill(signal.SIGKILL)
        job.finish()
        wait_until_gone(slurm)
    eventually(lambda: not slurm.jobs(), "SLURM has its nodes back")


def test_a_killed_agent_is_a_lost_host(slurm):
    with Running(slurm, "salloc", "-N2", "-n2", RUNJOB, *python(SLEEP)) as job:
        job.wait_for_lines(2)
        (agent,) = [process for process in slurm.nodes[1].processes() if process.name == "runjob-agent"]
        agent.kill()
        status, _, errors = job.finish()
        assert status == 125
        assert "runjob: error: lost the agent on s2: it closed the connection" in errors
    wait_until_gone(slurm)


def test_a_cut_network_ends_the_job(slurm):
    node = slurm.nodes[2]
    with Running(slurm, "salloc", "-N3", "-n3", RUNJOB, "--grace-period", "1", *python(STUBBORN)) as job:
        job.wait_for_lines(3)
        node.cut_network()
        try:
            eventually(lambda: not any(ours_on(host) for host in slurm.nodes), "nothing of the job is left on any node")
        finally:
            node.restore_network()
        status, _, errors = job.finish(timeout=120)
        assert status == 125
        assert "lost the agent on s3: it has sent nothing for 5 s" in errors
    wait_until_idle(slurm)


def test_a_node_that_slurm_sets_down_ends_the_job(slurm):
    with Running(slurm, "salloc", "-N2", "-n2", "--no-kill", RUNJOB, "--grace-period", "1", *python(SLEEP)) as job:
        job.wait_for_lines(2)
        slurm.run(["scontrol", "update", "NodeName=s2", "State=DOWN", "Reason=test"], user="root", check=True)
        status, _, errors = job.finish()
        if status == 137:  # SLURM has killed the rank first, and the agent could still report it
            assert re.search(r"runjob: error: rank 1 on s2 \(pid \d+\) was killed by signal 9 \(SIGKILL\)", errors), errors
        else:
            assert status == 125, errors
            assert re.search(r"runjob: error: lost the agent on s2: it closed the connection; srun: error: .*s2", errors), errors
    wait_until_gone(slurm)
    wait_until_idle(slurm)
