"""The rank that failed first is named, also when those that only lost it end before it does."""

import ctypes
import os
import pathlib
import re
import subprocess
import sys
import threading
import time

import pytest

from runjob import basics, exceptions, job, operations
from runjob._library import library


def _barrier():
    handle = ctypes.c_int64()
    job.check(library().runjob_barrier_async(b"never complete", 0, ctypes.byref(handle)))
    job.wait(handle.value)


def _wait_until_gone(pid_file):
    path = pathlib.Path(pid_file)
    while not path.exists() or os.path.exists(f"/proc/{path.read_text()}"):
        time.sleep(0.01)


def _init_and_say_pid(pid_file):
    basics.init()
    if basics.rank() == 1:
        pathlib.Path(pid_file + ".new").write_text(str(os.getpid()))
        os.rename(pid_file + ".new", pid_file)


def _raise_and_be_slow_to_end(pid_file):
    _init_and_say_pid(pid_file)
    if basics.rank() == 0:
        threading.Thread(target=_wait_until_gone, args=(pid_file,)).start()  # the interpreter joins it before it ends
        raise LookupError("the data is missing")
    _barrier()


def _leave_and_be_slow_to_end(pid_file):
    _init_and_say_pid(pid_file)
    if basics.rank() == 0:
        basics.shutdown()
        _wait_until_gone(pid_file)
        sys.exit(7)
    _barrier()


def _victim_raises_an_exception_of_its_own(pid_file):
    _init_and_say_pid(pid_file)
    if basics.rank() == 0:
        basics.shutdown()
        _wait_until_gone(pid_file)
        sys.exit(7)
    try:
        _barrier()
    except exceptions.AbortedError as error:
        raise RuntimeError("training failed") from error


def test_a_rank_that_raises_is_named_with_its_exception(run_ranks, tmp_path):
    job = run_ranks(_raise_and_be_slow_to_end, 2, str(tmp_path / "pid"), status=1)
    (line,) = [line for line in job.stderr.splitlines() if line.startswith("runjob: error: ")]
    assert line.startswith("runjob: error: rank 0 on localhost (pid ")
    assert ": LookupError: the data is missing" in line


@pytest.mark.parametrize("what", [_leave_and_be_slow_to_end, _victim_raises_an_exception_of_its_own])
def test_a_rank_that_leaves_gives_its_own_status(run_ranks, tmp_path, what):
    job = run_ranks(what, 2, str(tmp_path / "pid"), status=7)
    assert "runjob: error: rank 0 on localhost (pid " in job.stderr
    assert "\n  rank 1 exited with status 1 because another rank had left" in job.stderr


def _leave_well(_):
    basics.init()
    if basics.rank() == 1:
        _barrier()


def _call_shutdown_and_go_on(_):
    basics.init()
    if basics.rank() == 1:
        _barrier()
    basics.shutdown()


def _exit_with_7(_):
    basics.init()
    if basics.rank() == 0:
        sys.exit(7)
    _barrier()


@pytest.mark.parametrize(
    "what, how", [(_leave_well, "ended its program"), (_call_shutdown_and_go_on, "called shutdown()")]
)
def test_a_rank_that_ended_normally_is_named_with_the_operation_that_waits_for_it(run_ranks, what, how):
    job = run_ranks(what, 2, "", status=1)
    reason = (
        f"rank 0 on localhost {how} while rank 1 on localhost waits in barrier 'never complete':"
        " do all ranks take the same number of steps? see join()"
    )
    assert f"AbortedError: {reason}" in job.stderr
    text = job.stderr[job.stderr.index("runjob: error: "):].splitlines()
    assert text[0] == f"runjob: error: {reason}"
    assert re.fullmatch(
        r"  rank 0 ended normally; rank 1 on localhost \(pid \d+\) exited with status 1 because of that", text[1]
    )


class Odd(Exception):
    def __str__(self):
        raise RuntimeError("no text")


def _raise(how):
    basics.init()
    if basics.rank() == 1:
        if how == "odd":
            raise Odd()
        if how == "hook":
            sys.excepthook = _hook_that_raises
            job._hooks_installed = False
            job._install_exit_hooks()  # as when the program sets its hook before init()
            raise ValueError("the cause")
        try:
            raise ValueError("the cause")
        finally:
            basics.shutdown()
    _barrier()


def _hook_that_raises(*_):
    raise RuntimeError("in the hook")


@pytest.mark.parametrize(
    "how, text", [("odd", "Odd: <exception str() failed>"), ("hook", "ValueError: the cause"), ("finally", "ValueError: the cause")]
)
def test_the_text_of_an_exception_is_not_lost(run_ranks, how, text):
    """Neither when it has none, nor when the program's own hook fails, nor when the program leaves the job while it is on its way."""
    job = run_ranks(_raise, 2, how, status=1)
    (line,) = [line for line in job.stderr.splitlines() if line.startswith("runjob: error: ")]
    assert re.match(r"runjob: error: rank 1 on localhost \(pid \d+\) exited with status 1: ", line), job.stderr
    assert line.split(" exited with status 1: ")[1].split("; stopped ")[0].endswith(text)


def _start_a_process_that_joins(_):
    basics.init()
    if basics.rank() == 1:
        code = (
            "from runjob import basics, exceptions\n"
            "try: basics.init()\n"
            "except exceptions.InvalidArgumentError as error: print(error)\n"
        )
        child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        alone = {name: value for name, value in os.environ.items() if name != "RUNJOB_RENDEZVOUS"}
        other = subprocess.run([sys.executable, "-c", code + "print(basics.size())"], capture_output=True, text=True, env=alone)
    operations.barrier()
    basics.shutdown()
    if os.environ["RANK"] == "1":
        return os.getpid(), child.stdout + child.stderr, other.stdout + other.stderr


def test_a_process_that_a_rank_starts_is_told_at_once_that_it_is_none(run_ranks):
    """It does not wait for the other ranks, which are in the job with its parent."""
    parent, told, other = run_ranks(_start_a_process_that_joins, 2, "").results[1]
    assert told.startswith(f"rank 1 is in the job already: it is process {parent}. A process that a rank starts is not a rank: this one (pid ")
    assert told.endswith("without RUNJOB_RENDEZVOUS, in which it is a job of its own\n")
    assert other.splitlines()[0] == "1"


def _join_again_after_shutdown(_):
    """As a script that only asks for its rank, and then starts the program that trains."""
    basics.init()
    basics.shutdown()
    code = "from runjob import basics, operations; basics.init(); operations.barrier(); print(basics.rank(), basics.size())"
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    basics.init()
    operations.barrier()
    return child.stdout + child.stderr


def test_a_process_takes_the_place_of_one_that_has_left(run_ranks):
    assert run_ranks(_join_again_after_shutdown, 2, "").results == ["0 2\n", "1 2\n"]


def test_a_rank_that_exits_with_a_status_is_named_with_it(run_ranks):
    job = run_ranks(_exit_with_7, 2, "", status=7)
    assert re.search(r"^runjob: error: rank 0 on localhost \(pid \d+\) exited with status 7\b", job.stderr, re.MULTILINE)
    assert "ended normally" not in job.stderr
