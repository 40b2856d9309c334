"""run() of python/runjob/handles.py: synchronous calls that are interrupted, refused, or run beside each other."""

import os
import signal
import sys
import threading

import pytest
import torch

import runjob.torch as hvd
from runjob._library import library
from runjob import calls, handles
from runjob.wire_names import TURNS, Turn


class Alarm(Exception):
    """What the handler of SIGALRM raises."""


def _ring(_, frame):
    """Raises as soon as the blocking call's operation is in flight."""
    while frame is not None and frame.f_code is not handles.Call.block.__code__:
        frame = frame.f_back
    if frame is not None and "core_handle" in frame.f_locals and frame.f_locals["core_handle"].value:
        signal.setitimer(signal.ITIMER_REAL, 0)
        raise Alarm


def _set_the_alarm():
    signal.signal(signal.SIGALRM, _ring)
    signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)


def _interrupted_by_a_signal(name):
    """Rank 0 is interrupted in "late", goes on, and rank 1 comes to it after that."""
    hvd.init()
    tensor = torch.tensor([1.0 + hvd.rank()])
    left = None
    if hvd.rank() == 0:
        _set_the_alarm()
        with pytest.raises(Alarm):
            hvd.allreduce_(tensor, name=name, op=hvd.Sum)
        left = len(handles._left)
        hvd.broadcast_(torch.ones(1), 0, name="go")
    else:
        hvd.broadcast_(torch.ones(1), 0, name="go")
        hvd.allreduce_(tensor, name=name, op=hvd.Sum)
    more = {hvd.allreduce(torch.ones(1), op=hvd.Sum).item() for _ in range(TURNS + 1)}  # each name once again
    return left, tensor.item(), more, len(handles._left) if name is None else None


@pytest.mark.parametrize("name", ["late", None])
def test_signal_handlers_run_in_a_blocking_call_and_leave_the_operation_in_flight(call_ranks, name):
    none_left = 0 if name is None else None
    assert call_ranks(_interrupted_by_a_signal, 2, name) == [(1, 3.0, {2.0}, none_left), (None, 3.0, {2.0}, none_left)]


def _interrupted_twice():
    """The operations that interrupted calls have left are forgotten when they are done, at the latest after the next such call."""
    hvd.init()
    lefts = []
    for turn in range(2):
        if hvd.rank() == 0:
            _set_the_alarm()
            with pytest.raises(Alarm):
                hvd.allgather(torch.ones(1), name=f"late.{turn}")
            lefts.append(list(handles._left))
            hvd.broadcast_(torch.ones(1), 0, name="go")
        else:
            hvd.broadcast_(torch.ones(1), 0, name="go")
            hvd.allgather(torch.ones(1), name=f"late.{turn}")
        hvd.barrier()
    return [len(left) for left in lefts], lefts[:1] and library().runjob_poll(lefts[0][0])


def test_what_interrupted_calls_have_left_does_not_pile_up(call_ranks):
    assert call_ranks(_interrupted_twice, 2) == [([1, 1], -1), ([], [])]


def _a_handler_that_calls():
    """Rank 0's signal handler runs a collective while the interrupted one, of the same kind, goes on waiting."""
    hvd.init()
    sums = []
    if hvd.rank() == 0:
        signal.signal(signal.SIGALRM, lambda *_: sums.append(hvd.allreduce(torch.ones(1), name="go", op=hvd.Sum).item()))
        signal.setitimer(signal.ITIMER_REAL, 0.05)
    else:
        sums.append(hvd.allreduce(torch.ones(1), name="go", op=hvd.Sum).item())
    sums.append(hvd.allreduce(torch.ones(1), op=hvd.Sum).item())
    return sums


def test_a_signal_handler_may_itself_run_a_collective(call_ranks):
    assert call_ranks(_a_handler_that_calls, 2) == [[2.0, 2.0]] * 2


def _another_thread_runs_meanwhile():
    """Rank 0's main thread blocks in "late"; rank 1 comes to that once rank 0's other thread has sent "go"."""
    hvd.init()
    if hvd.rank() == 1:
        hvd.broadcast(torch.ones(1), 0, name="go")
        return hvd.allreduce(torch.ones(1), name="late", op=hvd.Sum).item()
    sys.setswitchinterval(1000)  # no thread is made to give up the GIL: the call must let go of it itself
    thread = threading.Thread(target=lambda: hvd.broadcast(torch.ones(1), 0, name="go"))
    thread.start()
    late = hvd.allreduce(torch.ones(1), name="late", op=hvd.Sum).item()
    thread.join()
    return late


def test_another_python_thread_runs_in_a_blocking_call(call_ranks):
    assert call_ranks(_another_thread_runs_meanwhile, 2) == [2.0, 2.0]


def _forked_among_calls():
    """The child's parent has threads that are in calls of every name; the child has not."""
    hvd.init()
    turns = calls.ALLREDUCE.turns()
    for _ in range(TURNS):
        turns.begin(Turn())
    child = os.fork()
    if child == 0:
        try:
            hvd.allreduce(torch.ones(1))
        except hvd.HorovodInternalError:
            os._exit(42)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_forked_child_waits_for_no_call_of_its_parent(run_ranks):
    assert run_ranks(_forked_among_calls, 0).results == [42]


def _same_name_twice():
    hvd.init()
    handle = None
    if hvd.rank() == 0:
        handle = hvd.allreduce_async(torch.ones(1), name="grad", op=hvd.Sum)
        with pytest.raises(ValueError, match="allreduce.grad"):
            hvd.allreduce_(torch.ones(1), name="grad", op=hvd.Sum)
    hvd.barrier()
    return hvd.allreduce(torch.ones(1), name="grad", op=hvd.Sum).item() if handle is None else hvd.synchronize(handle).item()


def test_a_name_in_flight_is_refused_to_a_blocking_call(call_ranks):
    assert call_ranks(_same_name_twice, 2) == [2.0, 2.0]


def _one_synchronous_one_not():
    hvd.init()
    tensor = torch.ones(1)
    if hvd.rank() == 0:
        return hvd.allreduce(tensor, name="x", op=hvd.Sum).item()
    return hvd.synchronize(hvd.allreduce_async(tensor, name="x", op=hvd.Sum)).item()


def test_a_named_operation_may_be_synchronous_on_some_ranks_only(call_ranks):
    assert call_ranks(_one_synchronous_one_not, 2) == [2.0, 2.0]


def _unnamed_after_errors():
    hvd.init()
    texts = []
    for _ in range(TURNS + 1):
        with pytest.raises(ValueError):
            hvd.allreduce(torch.tensor([True]))  # refused before it is submitted
        with pytest.raises(hvd.HorovodInternalError) as caught:
            hvd.allreduce(torch.ones(1 + hvd.rank()))
        texts.append(str(caught.value))
    return "noname" in texts[0], hvd.allreduce(torch.ones(1), op=hvd.Sum).item()


def test_calls_that_fail_give_their_names_back(call_ranks):
    assert call_ranks(_unnamed_after_errors, 2) == [(True, 2.0)] * 2
