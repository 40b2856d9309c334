"""Groups in flight: names on the wire, failures, and calls that are interrupted."""

import signal
import threading

import pytest
import torch
from recorded_names import recorded

import runjob.torch as hvd
from runjob import calls, grouped, handles
from runjob.wire_names import TURNS


def _ones(count):
    return [torch.ones(2 + i) for i in range(count)]


def _names():
    hvd.init()
    with recorded(grouped.ALLREDUCE, grouped.ALLGATHER, calls.ALLREDUCE) as seen:
        for turn in range(TURNS + 1):
            hvd.grouped_allreduce(_ones(1))
            if turn == 0:
                hvd.synchronize(hvd.grouped_allreduce_async(_ones(2), name="a"))
                hvd.synchronize(hvd.allreduce_async(torch.ones(1)))
                hvd.synchronize(hvd.grouped_allgather_async(_ones(2)))
                hvd.grouped_allreduce_(_ones(3), name="a")
        hvd.shutdown()
        hvd.init()
        hvd.grouped_allreduce([torch.ones(1, requires_grad=True)])
        hvd.synchronize(hvd.grouped_allreduce_async(_ones(1)))
    return seen


def test_a_group_is_one_call_of_the_library(call_ranks):
    turns = [f"grouped_allreduce.noname.sync.{turn}" for turn in range(TURNS)]
    others = ["grouped_allreduce.a", "allreduce.noname.2", "grouped_allgather.noname.3", "grouped_allreduce.a"]
    expected = [turns[0], *others, *turns[1:], turns[0], turns[0], "grouped_allreduce.noname.1"]
    assert call_ranks(_names, 2) == [expected] * 2


def _in_flight():
    hvd.init()
    tensors = _ones(2)
    if hvd.rank() == 1:
        hvd.broadcast(torch.ones(1), 0, name="go")
        return [each.tolist() for each in hvd.grouped_allreduce_(tensors, name="g", op=hvd.Sum)]
    handle = hvd.grouped_allreduce_async_(tensors, name="g", op=hvd.Sum)
    assert not hvd.poll(handle)
    for call in (hvd.grouped_allreduce_async, hvd.grouped_allreduce):
        with pytest.raises(ValueError, match="grouped_allreduce.g': an operation of this name is still in flight"):
            call(_ones(2), name="g", op=hvd.Sum)
    hvd.broadcast(torch.ones(1), 0, name="go")
    while not hvd.poll(handle):
        pass
    outputs = [each.tolist() for each in hvd.synchronize(handle)]
    with pytest.raises(ValueError, match=f"handle {handle} is unknown"):
        hvd.poll(handle)
    assert hvd.synchronize(handle) is None and not handles._left
    return outputs


def test_a_groups_name_is_free_when_it_is_done(call_ranks):
    assert call_ranks(_in_flight, 2) == [[[2.0] * 2, [2.0] * 3]] * 2


def _one_is_different(blocking):
    hvd.init()
    tensors = [torch.ones(2), torch.ones(3 + hvd.rank()), torch.ones(4)]
    with pytest.raises(hvd.HorovodInternalError, match="grouped_allreduce.g_2of3': the ranks disagree on the shape") as caught:
        if blocking:
            hvd.grouped_allreduce_(tensors, name="g", op=hvd.Sum)
        else:
            hvd.synchronize(hvd.grouped_allreduce_async_(tensors, name="g", op=hvd.Sum))
    assert type(caught.value).__name__ == "MismatchError"
    after = hvd.grouped_allreduce(_ones(3), name="g", op=hvd.Sum)[1].tolist()  # the job goes on
    return [each.unique().tolist() for each in tensors], after, len(handles._left)


@pytest.mark.parametrize("blocking", [True, False])
def test_a_group_fails_as_a_whole(call_ranks, blocking):
    assert call_ranks(_one_is_different, 2, blocking) == [([[1.0]] * 3, [2.0] * 3, 0)] * 2


class Alarm(Exception):
    """What the handler of SIGALRM raises."""


def _ring(_, frame):
    """Raises as soon as the group is in flight."""
    while frame is not None and frame.f_code is not handles.Call.block.__code__:
        frame = frame.f_back
    if frame is not None and frame.f_locals.get("core_handle") and frame.f_locals["core_handle"].value:
        signal.setitimer(signal.ITIMER_REAL, 0)
        raise Alarm


def _interrupted_by_a_signal(name):
    """Rank 0 is interrupted in the group, goes on, and rank 1 comes to it after that."""
    hvd.init()
    tensors = _ones(2)
    left = None
    if hvd.rank() == 0:
        signal.signal(signal.SIGALRM, _ring)
        signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
        with pytest.raises(Alarm):
            hvd.grouped_allreduce_(tensors, name=name, op=hvd.Sum)
        left = len(handles._left)
        hvd.broadcast_(torch.ones(1), 0, name="go")
    else:
        hvd.broadcast_(torch.ones(1), 0, name="go")
        hvd.grouped_allreduce_(tensors, name=name, op=hvd.Sum)
    more = {hvd.grouped_allreduce(_ones(2), op=hvd.Sum)[1].sum().item() for _ in range(TURNS + 1)}  # each name once again
    hvd.barrier()
    return left, [tensor.tolist() for tensor in tensors], more, len(handles._left) if name is None else None


@pytest.mark.parametrize("name", ["late", None])
def test_an_interrupted_group_is_left_in_flight(call_ranks, name):
    rest = ([[2.0] * 2, [2.0] * 3], {6.0}, 0 if name is None else None)
    assert call_ranks(_interrupted_by_a_signal, 2, name) == [(1, *rest), (None, *rest)]


def _threads():
    hvd.init()
    sums = {}

    def work(thread):
        for turn in range(10):
            tensors = [torch.full((3,), float(thread + i)) for i in range(5)]
            sums[thread, turn] = [each.sum().item() for each in hvd.grouped_allreduce(tensors, name=str(thread), op=hvd.Sum)]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sums


def test_threads_have_groups_of_their_own(call_ranks):
    expected = {(thread, turn): [6.0 * (thread + i) for i in range(5)] for thread in range(4) for turn in range(10)}
    assert call_ranks(_threads, 2) == [expected] * 2


def _started_and_shut_down():
    hvd.init()
    handle = hvd.grouped_allreduce_async(_ones(2), name="never") if hvd.rank() == 0 else None
    if hvd.rank() == 1:
        with pytest.raises(hvd.HorovodInternalError):
            hvd.barrier()  # until rank 0 has left
        return None
    hvd.shutdown()
    with pytest.raises(hvd.HorovodInternalError) as caught:
        hvd.synchronize(handle)
    return type(caught.value).__name__, hvd.synchronize(handle), len(handles._left)


def test_shutdown_ends_a_group_in_flight(call_ranks):
    assert call_ranks(_started_and_shut_down, 2) == [("AbortedError", None, 0), None]


def _started_on_one_rank_run_on_the_other():
    hvd.init()
    if hvd.rank() == 0:
        outputs = hvd.grouped_allreduce(_ones(2), name="x", op=hvd.Sum)
    else:
        outputs = hvd.synchronize(hvd.grouped_allreduce_async(_ones(2), name="x", op=hvd.Sum))
    return [each.tolist() for each in outputs]


def test_a_named_group_may_be_synchronous_on_some_ranks_only(call_ranks):
    assert call_ranks(_started_on_one_rank_run_on_the_other, 2) == [[[2.0] * 2, [2.0] * 3]] * 2


def _joined():
    hvd.init()
    sums = [[each.tolist() for each in hvd.grouped_allreduce(_ones(2), name="g", op=hvd.Sum)] for _ in range(1 + hvd.rank())]
    return sums, hvd.join()


def test_zeros_of_a_rank_that_has_joined_take_part(call_ranks):
    both, one = [[2.0] * 2, [2.0] * 3], [[1.0] * 2, [1.0] * 3]
    assert call_ranks(_joined, 2) == [([both], 1), ([both, one], 1)]
