"""The rank that failed first is named, also when those that only lost it end before it does."""

import ctypes
import os
import pathlib
import sys
import threading
import time

import pytest

from runjob import basics
from runjob._library import library


def _barrier():
    handle = ctypes.c_int64()
    basics.check(library().runjob_barrier_async(b"never complete", 0, ctypes.byref(handle)))
    basics.wait(handle.value)


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
    except basics.AbortedError as error:
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


def test_a_victim_of_a_rank_that_ends_well_is_named(run_ranks):
    job = run_ranks(_leave_well, 2, "", status=1)
    assert "runjob: error: rank 1 on localhost (pid " in job.stderr
    assert "rank 0 on localhost called shutdown()" in job.stderr
