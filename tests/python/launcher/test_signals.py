"""Signals that runjob gets for its ranks, and Ctrl-Z."""

import os
import re
import select
import signal
import socket
import subprocess
import time

import pytest
from jobs import ROOT, TIMEOUT, Marked, by_rank, command, python
from testbed import eventually

FORWARDED = [signal.SIGUSR1, signal.SIGUSR2, signal.SIGQUIT, signal.SIGWINCH, signal.SIGCONT]

# Prints the name of each signal. Python runs a handler between two instructions: a signal just before a long sleep, or a
# signal.pause(), would be noticed only after it.
LISTENER = f"""
import signal, sys, time
for number in {[int(number) for number in FORWARDED]}:
    signal.signal(number, lambda number, _: print(signal.Signals(number).name, flush=True))
print('ready', flush=True)
while True: time.sleep(0.1)
"""


def stopped(pid):
    with open(f"/proc/{pid}/stat") as stat:
        return stat.read().rpartition(")")[2].split()[0] == "T"


def ranks_of(job):
    return [pid for pid, name in job.names().items() if name not in ("runjob-agent", "runjob-guard", "runjob-guard-2")]


@pytest.mark.parametrize("number", FORWARDED)
def test_a_signal_reaches_every_rank(number):
    with Marked("-np", "2", *python(LISTENER)) as job:
        job.wait_for_lines(2)
        job.process.send_signal(number)
        assert by_rank("".join(job.wait_for_lines(2))) == {0: [number.name], 1: [number.name]}
        job.process.terminate()
        assert job.finish()[0] == 143


def test_a_rank_without_a_handler_is_killed_by_it():
    with Marked("-np", "2", "sh", "-c", "echo ready; sleep 600") as job:
        job.wait_for_lines(2)
        job.process.send_signal(signal.SIGUSR1)
        status, _, errors = job.finish()
        assert status == 128 + signal.SIGUSR1
        assert "was killed by signal 10 (SIGUSR1)" in errors


def test_ctrl_z_stops_the_ranks_and_runjob_and_continue_resumes_both():
    with Marked("-np", "2", *python(LISTENER)) as job:
        job.wait_for_lines(2)
        ranks = ranks_of(job)
        assert len(ranks) == 2
        job.process.send_signal(signal.SIGTSTP)
        os.waitid(os.P_PID, job.process.pid, os.WSTOPPED)
        eventually(lambda: all(map(stopped, ranks)), "both ranks are stopped")
        job.process.send_signal(signal.SIGCONT)
        assert by_rank("".join(job.wait_for_lines(2))) == {0: ["SIGCONT"], 1: ["SIGCONT"]}
        assert not any(map(stopped, ranks))
        job.process.terminate()
        assert job.finish()[0] == 143


def test_the_time_of_ctrl_z_does_not_count_for_the_start():
    """Rank 1 calls init() after a stop that is longer than --start-timeout."""
    late = """
import os, signal
import runjob.numpy as rj
os.environ['RUNJOB_START_TIMEOUT'] = '600'  # the ranks have a limit of their own
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
print('ready', flush=True)
if os.environ['RUNJOB_RANK'] == '1': signal.sigwait([signal.SIGUSR1])
rj.init()
print(rj.size(), flush=True)
"""
    source = {"PYTHONPATH": str(ROOT / "python")}
    with Marked("-np", "2", "--start-timeout", "4", "--verbose", *python(late), env=source) as job:
        job.wait_for_lines(2)
        for line in job.process.stderr:
            if "rank 0 called init()" in line:
                break
        job.process.send_signal(signal.SIGTSTP)
        os.waitid(os.P_PID, job.process.pid, os.WSTOPPED)
        time.sleep(5)
        job.process.send_signal(signal.SIGCONT)
        job.process.send_signal(signal.SIGUSR1)
        status, output, errors = job.finish()
        assert status == 0, errors
        assert by_rank(output) == {0: ["2"], 1: ["2"]}


@pytest.mark.usefixtures("root")  # for the PID namespace
def test_the_first_process_of_a_container_is_not_stopped_and_its_ranks_go_on():
    container = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    listener = [*container, *command("-np", "1", *python(LISTENER))]
    with subprocess.Popen(listener, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as outer:
        assert outer.stdout.readline() == "[0]<stdout>:ready\n"
        with open(f"/proc/{outer.pid}/task/{outer.pid}/children") as children:
            runjob = int(children.read())
        os.kill(runjob, signal.SIGTSTP)
        assert "the job is not stopped: runjob is the first process of its container" in outer.stderr.readline()
        os.kill(runjob, signal.SIGUSR1)
        assert outer.stdout.readline() == "[0]<stdout>:SIGUSR1\n"
        os.kill(runjob, signal.SIGTERM)
        assert outer.wait(timeout=TIMEOUT) == 143


def test_a_stopped_job_can_be_ended():
    with Marked("-np", "2", *python(LISTENER)) as job:
        job.wait_for_lines(2)
        job.process.send_signal(signal.SIGTSTP)
        os.waitid(os.P_PID, job.process.pid, os.WSTOPPED)
        job.process.terminate()
        job.process.send_signal(signal.SIGCONT)
        assert job.finish()[0] == 143
        assert job.alive() == []


def test_ranks_that_stop_are_killed_with_a_stopped_runjob():
    """SIGKILL to a stopped runjob: the agent notices, and what is stopped ends all the same."""
    with Marked("-np", "2", *python(LISTENER)) as job:
        job.wait_for_lines(2)
        job.process.send_signal(signal.SIGTSTP)
        os.waitid(os.P_PID, job.process.pid, os.WSTOPPED)
        job.process.kill()
        job.wait_until_gone()


# A daemon in a session of its own, whose parent is the rank or has ended, says that it has been told to end.
DAEMON = f"""
import os, signal, sys, time
if os.fork():
    if sys.argv[1] == 'orphan': os._exit(0)
else:
    os.setsid()
    signal.signal(signal.SIGTERM, lambda *_: (print('daemon told', flush=True), os._exit(0)))
    print('ready', flush=True)
while True: time.sleep(0.1)
"""


@pytest.mark.parametrize("family", ["child", "orphan"])
@pytest.mark.parametrize("number, status", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_daemon_of_a_rank_is_told_to_end_with_the_ranks(family, number, status):
    # The rank outlives the orphan's parent. It is no shell by then: one that waits for a program may ignore SIGINT.
    orphan = family == "orphan"
    command = [*python(DAEMON), family]
    script = f'"$@" {"; echo left; exec sleep 600" if orphan else ""}'
    with Marked("-np", "1", "--grace-period", "600", "sh", "-c", script, "sh", *command) as job:
        job.wait_for_lines(2 if orphan else 1)
        job.process.send_signal(number)
        ended, output, _ = job.finish()
        assert ended == status
        assert by_rank(output) == {0: ["daemon told"]}
        assert job.alive() == []


def test_a_daemon_is_told_to_end_when_runjob_is_killed():
    with Marked("-np", "1", "--grace-period", "600", *python(DAEMON), "child") as job:
        job.wait_for_lines(1)
        job.process.kill()
        job.wait_until_gone()


def test_ctrl_c_says_what_it_waits_for_and_a_second_one_kills():
    deaf = "import signal, time; [signal.signal(n, signal.SIG_IGN) for n in (2, 15)]; print('ready', flush=True); time.sleep(600)"
    with Marked("-np", "2", "--grace-period", "600", *python(deaf)) as job:
        job.wait_for_lines(2)
        job.process.send_signal(signal.SIGINT)
        assert job.process.stderr.readline() == (
            "runjob: warning: interrupted: 2 ranks have up to 600 s to end; Ctrl-C again kills\n"
        )
        waiting = job.process.stderr.readline()
        assert re.fullmatch(
            r"runjob: warning: localhost: waiting for rank \d \(pid \d+, python\S*\), rank \d \(pid \d+, python\S*\)"
            r" up to 598 s; Ctrl-C again kills\n",
            waiting,
        )
        job.process.send_signal(signal.SIGINT)
        status, _, errors = job.finish()
        assert (status, errors) == (130, "runjob: warning: killing all ranks\n")


@pytest.mark.parametrize("make", [os.pipe, lambda: [end.detach() for end in socket.socketpair()]], ids=["pipe", "socket"])
def test_ctrl_c_ends_the_ranks_although_nobody_reads_the_output(make):
    reader, writer = make()
    chatty = "while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done"
    with Marked("-np", "2", "sh", "-c", chatty, stdout=writer, stderr=writer) as job:
        eventually(lambda: not select.select([], [writer], [], 0)[1], "the output is full")
        os.close(writer)
        job.process.send_signal(signal.SIGINT)
        eventually(lambda: not ranks_of(job), "the ranks have ended")
        with open(reader, "rb", buffering=0) as output:
            text = b"".join(iter(lambda: output.read(1 << 20), b""))
        assert job.process.wait(timeout=TIMEOUT) == 130
        assert b"runjob: warning: interrupted: 2 ranks have up to 10 s to end" in text


@pytest.mark.parametrize("command, status", [("true", 0), ("echo ready; sleep 600", 143)])
def test_signals_that_were_blocked_when_runjob_was_started(command, status):
    def block():
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD, signal.SIGINT, signal.SIGTERM])

    with Marked("-np", "1", "sh", "-c", command, preexec_fn=block) as job:
        if status:
            job.wait_for_lines(1)
            job.process.terminate()
        assert job.finish()[0] == status


def test_nohup():
    """Like everything that was ignored when runjob was started, a hang-up stays ignored."""
    with Marked("-np", "1", *python(LISTENER), preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)) as job:
        job.wait_for_lines(1)
        job.process.send_signal(signal.SIGHUP)
        job.process.send_signal(signal.SIGUSR2)
        assert by_rank(job.wait_for_lines(1)[0]) == {0: ["SIGUSR2"]}
        job.process.terminate()
        assert job.finish()[0] == 143
