"""python/runjob/job.py: joining, leaving, and how a rank's interpreter ends."""

import os
import signal
import sys
import threading

import pytest

import runjob.torch as hvd
from runjob import job

PLACES = ["rank", "size", "local_rank", "local_size", "cross_rank", "cross_size", "is_homogeneous"]


@pytest.mark.parametrize("place", PLACES)
def test_a_place_before_init_is_a_value_error(place):
    with pytest.raises(ValueError, match="has not been initialized; call init"):
        getattr(job, place)()


def _places():
    before = hvd.is_initialized()
    hvd.init()
    hvd.init()  # does nothing
    places = (hvd.rank(), hvd.size(), hvd.local_rank(), hvd.local_size(), hvd.cross_rank(), hvd.cross_size())
    return before, hvd.is_initialized(), places, hvd.is_homogeneous()


def test_without_a_launcher_the_job_is_one_rank(run_ranks):
    assert run_ranks(_places, 0).results == [(False, True, (0, 1, 0, 1, 0, 1), True)]


@pytest.mark.parametrize("np", [1, 3])
def test_ranks_know_their_places(run_ranks, np):
    expected = [(False, True, (rank, np, rank, np, 0, 1), True) for rank in range(np)]
    assert run_ranks(_places, np).results == expected


def _init_a_hundred_times():
    import torch

    sums = []
    for turn in range(100):
        hvd.init()
        sums.append(hvd.allreduce(torch.tensor([turn + hvd.rank()]), op=hvd.Sum).item())
        hvd.shutdown()
        assert not hvd.is_initialized()
    return sums


@pytest.mark.parametrize("np", [0, 2])
def test_a_process_may_join_a_hundred_times(run_ranks, np):
    ranks = max(np, 1)
    for sums in run_ranks(_init_a_hundred_times, np).results:
        assert sums == [sum(turn + rank for rank in range(ranks)) for turn in range(100)]


def _unnamed_after_unequal_histories():
    import torch

    hvd.init()
    for _ in range(hvd.rank()):  # the ranks have done different numbers of operations in this job
        hvd.allreduce_async(torch.ones(1), name="only on rank 1")
    hvd.broadcast(torch.ones(1), 0, name="together")
    hvd.shutdown()
    hvd.init()
    return hvd.allreduce(torch.ones(1), op=hvd.Sum).item()


def test_numbers_of_unnamed_operations_begin_anew_with_a_job(run_ranks):
    assert run_ranks(_unnamed_after_unequal_histories, 2).results == [2.0, 2.0]


def _rank_1_raises():
    import torch

    hvd.init()
    if hvd.rank() == 1:
        raise LookupError("the data of rank 1 is missing")
    hvd.allreduce(torch.ones(1), name="never")


def test_an_uncaught_exception_ends_the_job_with_its_text(run_ranks):
    job = run_ranks(_rank_1_raises, 2, status=1)
    assert "LookupError: the data of rank 1 is missing" in job.stderr
    assert "runjob: error: rank 1 on " in job.stderr, "the other rank is a victim, and is not blamed"


def _raise_while_a_thread_waits():
    import torch

    hvd.init()
    handle = hvd.allreduce_async(torch.ones(1), name=f"only on rank {hvd.rank()}")
    if hvd.rank() == 1:
        threading.Thread(target=hvd.synchronize, args=(handle,)).start()  # not a daemon: the interpreter would join it
        raise LookupError("main thread gives up")
    hvd.synchronize(handle)


def test_an_uncaught_exception_also_ends_a_rank_whose_thread_is_in_a_collective(run_ranks):
    job = run_ranks(_raise_while_a_thread_waits, 2, status=1)
    assert "LookupError: main thread gives up" in job.stderr


def _exit_while_others_wait():
    import torch

    hvd.init()
    if hvd.rank() == 1:
        sys.exit(7)
    try:
        hvd.allreduce(torch.ones(1), name="never")
    except hvd.HorovodInternalError:
        signal.pause()  # until the launcher stops it: the other one has failed first


def test_leaving_does_not_wait_for_the_others_and_keeps_the_status(run_ranks):
    run_ranks(_exit_while_others_wait, 2, status=7)


def _signal_in_a_wait():
    import torch

    class Alarm(Exception):
        pass

    def ring(*_):
        raise Alarm

    hvd.init()
    outcome = None
    if hvd.rank() == 0:
        signal.signal(signal.SIGALRM, ring)
        handle = hvd.allreduce_async(torch.ones(1), name="late", op=hvd.Sum)
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        try:
            hvd.synchronize(handle)
        except Alarm:
            outcome = "alarm"
        hvd.broadcast(torch.ones(1), 0, name="go")
    else:
        hvd.broadcast(torch.ones(1), 0, name="go")
        handle = hvd.allreduce_async(torch.ones(1), name="late", op=hvd.Sum)
    return outcome, hvd.synchronize(handle).item()


def test_signal_handlers_run_in_a_wait_and_leave_the_operation_in_flight(run_ranks):
    assert run_ranks(_signal_in_a_wait, 2).results == [("alarm", 2.0), (None, 2.0)]


def _signal_in_init():
    if os.environ["RUNJOB_RANK"] == "1":
        signal.pause()  # never calls init()

    def ring(*_):
        raise KeyboardInterrupt("interrupted in init")

    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    hvd.init()


def test_a_rank_that_waits_in_init_can_be_interrupted(run_ranks):
    job = run_ranks(_signal_in_init, 2, status=None)
    assert job.status not in (0, 125), "the launcher's start timeout came first"
    assert "KeyboardInterrupt: interrupted in init" in job.stderr


def _collective_in_a_forked_child():
    import torch

    hvd.init()
    child = os.fork()
    if child == 0:
        try:
            hvd.allreduce(torch.ones(1))
        except hvd.HorovodInternalError:
            os._exit(42)
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return status, hvd.allreduce(torch.ones(1), op=hvd.Sum).item()


def test_a_forked_child_gets_an_error_and_its_parent_goes_on(run_ranks):
    assert run_ranks(_collective_in_a_forked_child, 2).results == [(42, 2.0), (42, 2.0)]


def _place_is_missing():
    if os.environ["RUNJOB_RANK"] == "1":
        return "left early"
    hvd.init()


def test_a_rank_that_never_calls_init_is_named(run_ranks):
    job = run_ranks(_place_is_missing, 2, status=None)
    assert job.status != 0
    assert "rank 1" in job.stderr
