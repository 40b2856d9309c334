"""Operations that some ranks submit and others do not: what the ranks say of them, and when they end the job."""

import os
import subprocess
import sys

import pytest
import ranks

# Rank 1 comes to "late" once somebody has opened the FIFO for writing.
PROGRAM = """
import ctypes, sys
from runjob import basics, job
from runjob._library import library

def barrier(name):
    handle = ctypes.c_int64()
    job.check(library().runjob_barrier_async(name.encode(), 0, ctypes.byref(handle)))
    job.check(library().runjob_wait(handle, -1.0))

basics.init()
barrier("first")
if basics.rank() == 1:
    open(sys.argv[1]).close()
barrier("late")
basics.shutdown()
"""
WARNING = "barrier 'late' has waited "
MISSING = " s for rank 1 on localhost (last submitted 'first')"


def start(go, *options, **variables):
    """The job; its rank 1 comes when `go` is opened for writing."""
    os.mkfifo(go)
    return subprocess.Popen(
        [str(ranks.LAUNCHER), "-np", "2", *options, sys.executable, "-c", PROGRAM, str(go)],
        env=ranks.environment(**variables), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.mark.parametrize("shared_memory", ["0", "1"])
def test_a_stall_is_told_with_the_missing_rank_and_its_last_deed(tmp_path, shared_memory):
    job = start(tmp_path / "go", "--stall-check-warning-time-seconds", "0.1", RUNJOB_SHARED_MEMORY=shared_memory)
    with job:
        warning = next(line for line in job.stderr if WARNING in line)
        (tmp_path / "go").write_text("")
        job.stderr.read()
    assert warning.startswith("[0]") and MISSING in warning
    assert job.returncode == 0


@pytest.mark.parametrize("shared_memory", ["0", "1"])
def test_after_the_shutdown_time_the_operations_end_with_the_reason(tmp_path, shared_memory):
    job = start(tmp_path / "go", "--stall-check-shutdown-time-seconds", "0.3", RUNJOB_SHARED_MEMORY=shared_memory)
    with job:
        stderr = job.stderr.read()
    assert job.returncode == 1
    assert WARNING in stderr and MISSING in stderr and "(RUNJOB_STALL_SHUTDOWN_TIME_SECONDS) allows no more" in stderr
    (blame,) = [line for line in stderr.splitlines() if line.startswith("runjob: error: ")]
    assert blame.startswith("runjob: error: rank 1 on localhost (pid ") and ") stalled: " + WARNING in blame
    assert "--stall-check-shutdown-time-seconds" in blame
    assert "Traceback" not in stderr
    assert "\n  rank 0 exited with status 1 because the operation that it waited for was not completed" in stderr
