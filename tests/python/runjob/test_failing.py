"""The rank that failed first is named, also when those that only lost it end before it does."""

import ctypes
import os
import pathlib
import re
import sys
import threading
import time

import pytest

from runjob import basics, exceptions, job
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


def test_a_rank_that_exits_with_a_status_is_named_with_it(run_ranks):
    job = run_ranks(_exit_with_7, 2, "", status=7)
    assert re.search(r"^runjob: error: rank 0 on localhost \(pid \d+\) exited with status 7\b", job.stderr, re.MULTILINE)
    assert "ended normally" not in job.stderr
