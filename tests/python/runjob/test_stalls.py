"""Operations that some ranks submit and others do not: what the ranks say of them, and when they end the job."""

import json
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
    assert "\n  rank 0 exited with status 1 because an operation was not completed in time" in stderr


MUTUAL = """
import sys
import numpy as np
import runjob.numpy as hvd

way = sys.argv[1]
pairs = [hvd.ProcessSet([0, 1]), hvd.ProcessSet([1, 2])]
hvd.init(process_sets=pairs if way == "sets" else None)
rank = hvd.rank()

def sum_of(name, **options):
    hvd.allreduce(np.ones(4), name=name, **options)

for step in range(2):
    sum_of("grad")
if way == "uneven":
    sum_of("val" if rank == 1 else "grad")
if way == "async":
    handles = [hvd.allreduce_async(np.ones(4), name=f"{name}.{rank}") for name in ("first", "second")]
    for handle in handles:
        hvd.synchronize(handle)
if way == "sets":
    if rank == 0:
        sum_of("x", process_set=pairs[0])
    if rank == 1:
        sum_of("y", process_set=pairs[1])
    sum_of("z")
"""
STEPS = ": the ranks take different steps, or the same ones in another order; see join(). "


def end_of_mutual_wait(tmp_path, way, np, **variables):
    """The lines of the error, and the status file, which do not depend on which rank is first."""
    (tmp_path / "mutual.py").write_text(MUTUAL)
    done = subprocess.run(
        [str(ranks.LAUNCHER), "-np", str(np), "--stall-check-shutdown-time-seconds", "0.4", "--status-file", str(tmp_path / "status"),
         sys.executable, str(tmp_path / "mutual.py"), way],
        env=ranks.environment(**variables), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=ranks.TIMEOUT_SECONDS,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    status = json.loads((tmp_path / "status").read_text())
    assert (status["exit_status"], status["cause"], status["first_failed_rank"], status["failed_ranks"]) == (1, "mutual wait", None, [])
    assert [rank["outcome"] for rank in status["ranks"]] == ["victim"] * np
    assert [rank["status"] for rank in status["ranks"]] == [1] * np
    lines = done.stderr.splitlines()
    (blame,) = [line for line in lines if line.startswith("runjob: error: ")]
    # Each rank has the same error, and shows the line in which it waits.
    told = blame.removeprefix("runjob: error: ")
    assert len([line for line in lines if line.startswith("[") and f"WaitTimeoutError: {told}" in line]) == np, done.stderr
    return told, lines[lines.index(blame) + 1:]


@pytest.mark.parametrize("shared_memory", ["0", "1"])
def test_ranks_that_wait_for_each_other_are_all_named_and_none_is_blamed(tmp_path, shared_memory):
    told, rest = end_of_mutual_wait(tmp_path, "uneven", 2, RUNJOB_SHARED_MEMORY=shared_memory)
    expected = "rank 0 on localhost waits in allreduce 'allreduce.grad' and rank 1 on localhost in allreduce 'allreduce.val'" + STEPS
    assert told.startswith(expected) and "--stall-check-shutdown-time-seconds" in told
    assert rest == ["  ranks 0, 1 exited with status 1 because an operation was not completed in time"]


def test_of_more_than_two_ranks_those_in_one_operation_are_named_together(tmp_path):
    told, _ = end_of_mutual_wait(tmp_path, "uneven", 4)
    waits = "ranks 0 (localhost), 2 (localhost), 3 (localhost) wait in allreduce 'allreduce.grad' and rank 1 on localhost in allreduce "
    assert told.startswith(waits + "'allreduce.val'" + STEPS)


def test_operations_that_are_in_flight_together_are_named_by_the_oldest(tmp_path):
    told, _ = end_of_mutual_wait(tmp_path, "async", 2)
    waits = "rank 0 on localhost waits in allreduce 'allreduce.first.0' and rank 1 on localhost in allreduce 'allreduce.first.1'"
    assert told.startswith(waits + STEPS)


def test_ranks_wait_for_each_other_in_different_process_sets(tmp_path):
    """None of the sets has a circle: rank 0 waits for rank 1 in one, that one for rank 2 in another, and this one for all in the job."""
    told, _ = end_of_mutual_wait(tmp_path, "sets", 3)
    assert told.startswith(
        "rank 0 on localhost waits in allreduce 'allreduce.x' of process set 1, rank 1 on localhost in allreduce 'allreduce.y' of process "
        "set 2 and rank 2 on localhost in allreduce 'allreduce.z'" + STEPS
    )


CHAIN = """
import sys
import numpy as np
import runjob.numpy as hvd

pairs = [hvd.ProcessSet([0, 1]), hvd.ProcessSet([1, 2])]
hvd.init(process_sets=pairs)
hvd.barrier()
if hvd.rank() == 0:
    hvd.allreduce(np.ones(4), name="x", process_set=pairs[0])
if hvd.rank() == 1:
    hvd.allreduce(np.ones(4), name="y", process_set=pairs[1])
open(sys.argv[1]).close()
"""


def test_a_rank_that_waits_itself_for_a_late_one_is_not_blamed(tmp_path):
    """Rank 2 is in no collective: it waits for a FIFO that nobody writes."""
    os.mkfifo(tmp_path / "go")
    done = subprocess.run(
        [str(ranks.LAUNCHER), "-np", "3", "--stall-check-shutdown-time-seconds", "0.4", "--status-file", str(tmp_path / "status"),
         sys.executable, "-c", CHAIN, str(tmp_path / "go")],
        env=ranks.environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=ranks.TIMEOUT_SECONDS,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    (blame,) = [line for line in done.stderr.splitlines() if line.startswith("runjob: error: ")]
    assert blame.startswith("runjob: error: rank 2 on localhost (pid ") and ") stalled: " in blame
    assert "waits itself in" not in blame or "rank 1 on localhost waits itself in allreduce 'allreduce.y' of process set 2 for rank 2" in blame
    assert json.loads((tmp_path / "status").read_text())["first_failed_rank"] == 2
