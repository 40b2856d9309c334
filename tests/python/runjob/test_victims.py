"""One error of one rank: its traceback is shown, and each rank that only lost it prints one line."""

import re
import subprocess
import sys

import pytest
import ranks

from runjob import exceptions, victims

PROGRAM = """
import ctypes
from runjob import basics, job
from runjob._library import library

def step():
    if basics.rank() == 1:
        raise ValueError("a sample without a label")
    handle = ctypes.c_int64()
    job.check(library().runjob_barrier_async(b"step", 0, ctypes.byref(handle)))
    job.wait(handle.value)

basics.init()
step()
"""
FOLDED = {victims.VARIABLE: "1"}


def run(tmp_path, *options, before=""):
    (tmp_path / "train.py").write_text(before + PROGRAM)
    done = subprocess.run(
        [str(ranks.LAUNCHER), "-np", "4", "--continue-on-failure", *options, sys.executable, str(tmp_path / "train.py")],
        env=ranks.environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=ranks.TIMEOUT_SECONDS,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    return [line for line in done.stderr.splitlines() if "OMP_NUM_THREADS" not in line]


def by_victims(lines):
    return [line for line in lines if re.match(r"\[[023]\]<stderr>:", line)]


def test_the_cause_is_shown_and_each_victim_is_one_line(tmp_path):
    lines = run(tmp_path)
    assert "[1]<stderr>:Traceback (most recent call last):" in lines
    places = [f"{tmp_path / 'train.py'}:{number} in step" for number in (10, 11)]  # it starts the barrier, or waits for it
    loss = "PeerLostError: rank 1 on localhost failed: ValueError: a sample without a label"
    for line in by_victims(lines):
        assert line[len("[0]<stderr>:"):] in [f"{place}: {loss} (--verbose shows the traceback)" for place in places]
    assert len(by_victims(lines)) == 3
    (cause,) = [line for line in lines if line.startswith("runjob: error: ")]
    assert cause.startswith("runjob: error: rank 1 on localhost (pid ")
    assert ") exited with status 1: ValueError: a sample without a label" in cause
    assert len(lines) < 25


def test_verbose_shows_every_traceback(tmp_path):
    lines = run(tmp_path, "--verbose")
    assert sum("Traceback (most recent call last):" in line for line in by_victims(lines)) == 3


def test_the_variable_can_be_given(tmp_path):
    lines = run(tmp_path, "-x", f"{victims.VARIABLE}=0")
    assert sum("Traceback (most recent call last):" in line for line in by_victims(lines)) == 3


def test_a_hook_of_the_user_gets_the_whole_error(tmp_path):
    lines = run(tmp_path, before="import sys\nsys.excepthook = lambda kind, value, trace: print('hook', value, file=sys.stderr)\n")
    assert len([line for line in by_victims(lines) if line[len("[0]<stderr>:"):].startswith("hook rank 1 on localhost failed")]) == 3


def raised(error, cause=None):
    try:
        if cause is None:
            raise error
        raise error from cause
    except type(error) as caught:
        return caught


@pytest.mark.parametrize("kind", [exceptions.AbortedError, exceptions.PeerLostError])
def test_only_the_loss_of_another_rank_is_one_line(kind):
    line = victims.victim_line(raised(kind("rank 1 is gone")), FOLDED)
    assert re.fullmatch(rf"{re.escape(__file__)}:\d+ in raised: {kind.__name__}: rank 1 is gone \(--verbose shows the traceback\)", line)
    assert victims.victim_line(raised(kind("rank 1 is gone")), {}) is None
    assert victims.victim_line(raised(kind("rank 1 is gone")), {victims.VARIABLE: "0"}) is None
    assert victims.victim_line(raised(kind("rank 1 is gone"), ValueError("the user's")), FOLDED) is None


def test_other_errors_keep_their_traceback():
    for error in (ValueError("x"), exceptions.MismatchError("x"), exceptions.WaitTimeoutError("x"), KeyboardInterrupt()):
        assert victims.victim_line(raised(error), FOLDED) is None


def test_a_stall_is_the_late_ranks_fault():
    text = "allreduce 'x' has waited 3 s for rank 1; --stall-check-shutdown-time-seconds allows no more"
    assert text in victims.victim_line(raised(exceptions.WaitTimeoutError(text)), FOLDED)


def test_an_error_without_a_place_is_named_all_the_same():
    line = victims.victim_line(exceptions.PeerLostError("rank 1 is gone"), FOLDED)
    assert line == "PeerLostError: rank 1 is gone (--verbose shows the traceback)"


def test_an_error_in_the_handler_of_another_one_is_shown_with_it():
    try:
        try:
            raise ValueError("the user's")
        finally:
            raise exceptions.PeerLostError("rank 1 is gone")
    except exceptions.PeerLostError as error:
        assert victims.victim_line(error, FOLDED) is None
