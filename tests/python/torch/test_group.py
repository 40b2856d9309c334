"""python/runjob/torch/group.py: names on the wire, waiting, failures of one of several, and calls that are interrupted."""

import gc
import os
import signal
import threading

import pytest
import torch

import runjob.torch as hvd
from runjob.torch import group, handles, operations
from runjob.torch.wire_names import TURNS


def _submit(tensor, name):
    """One operation of a group, alone and in place: the other rank has the whole group."""
    call = operations.allreduce_call_(tensor, None, hvd.Sum, 1.0, 1.0, hvd.global_process_set)
    call.submit(f"grouped_allreduce.{name}".encode())
    return call


def _ones(count):
    return [torch.ones(2 + i) for i in range(count)]


def _names():
    hvd.init()
    seen = []
    for collective in (operations._ALLREDUCE, operations._ALLGATHER):
        real = collective.submit
        collective.submit = lambda name, *rest, real=real: seen.append(name.decode()) or real(name, *rest)
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


def test_names_are_the_groups_with_a_place(run_ranks):
    turns = [f"grouped_allreduce.noname.sync.{turn}_1of1" for turn in range(TURNS)]
    a = [f"grouped_allreduce.a_{place}" for place in ("1of2", "2of2", "1of3", "2of3", "3of3")]
    unnamed = ["allreduce.noname.2", "grouped_allgather.noname.3_1of2", "grouped_allgather.noname.3_2of2"]
    expected = [turns[0], *a[:2], *unnamed, *a[2:], *turns[1:], turns[0], turns[0], "grouped_allreduce.noname.1_1of1"]
    assert run_ranks(_names, 2).results == [expected] * 2


def _one_of_two_done():
    hvd.init()
    tensors = _ones(2)
    if hvd.rank() == 1:
        calls = [_submit(tensors[0], "g_1of2")]
        hvd.broadcast(torch.ones(1), 0, name="go")
        calls.append(_submit(tensors[1], "g_2of2"))
        for call in calls:
            call.wait()
            call.release()
        return None
    handle = hvd.grouped_allreduce_async_(tensors, name="g", op=hvd.Sum)
    first = handles._table.operations[handle].calls[0]
    while first.poll() != 1:
        pass
    seen = [hvd.poll(handle)]
    with pytest.raises(ValueError, match="grouped_allreduce.g: a group of this name is still in flight"):
        hvd.grouped_allreduce_async(_ones(2), name="g", op=hvd.Sum)
    with pytest.raises(ValueError, match="grouped_allreduce.g: "):
        hvd.grouped_allreduce(_ones(2), name="g", op=hvd.Sum)
    hvd.broadcast(torch.ones(1), 0, name="go")
    while not hvd.poll(handle):
        pass
    seen.append(hvd.poll(handle))
    outputs = [each.tolist() for each in hvd.synchronize(handle)]
    with pytest.raises(ValueError, match=f"handle {handle} is unknown"):
        hvd.poll(handle)
    return handle, seen, outputs, hvd.synchronize(handle), len(handles._left)


def test_a_group_is_done_and_its_name_is_free_when_all_of_it_is_done(run_ranks):
    expected = (1, [False, True], [[2.0] * 2, [2.0] * 3], None, 0)
    assert run_ranks(_one_of_two_done, 2).results == [expected, None]


def _names_are_forgotten():
    hvd.init()
    for turn in range(3):
        hvd.synchronize(hvd.grouped_allreduce_async(_ones(2), name=str(turn)))
        hvd.grouped_allgather(_ones(2), name=str(turn))
    started = hvd.grouped_allreduce_async(_ones(2), name="done", op=hvd.Sum)
    while not hvd.poll(started):
        pass
    again = hvd.grouped_allreduce(_ones(2), name="done", op=hvd.Sum)[0].tolist()  # what is done has given its name back
    first = hvd.synchronize(started)[0].tolist()
    gc.collect()
    return first, again, len(group._groups)


def test_groups_that_are_over_are_forgotten(run_ranks):
    assert run_ranks(_names_are_forgotten, 2).results == [([2.0] * 2, [2.0] * 2, 0)] * 2


def _one_fails(blocking):
    """The second of three fails; rank 1 brings the third one when it has, and rank 0 has to wait for that."""
    hvd.init()
    tensors = _ones(3)
    if hvd.rank() == 1:
        calls = [_submit(tensors[0], "g_1of3"), _submit(torch.ones(9), "g_2of3")]
        with pytest.raises(hvd.HorovodInternalError):
            calls[1].wait()
        hvd.broadcast(torch.ones(1), 0, name="go")
        calls.append(_submit(tensors[2], "g_3of3"))
        for call in (calls[0], calls[2]):
            call.wait()
    else:
        thread = threading.Thread(target=lambda: hvd.broadcast(torch.ones(1), 0, name="go"))
        thread.start()
        with pytest.raises(hvd.HorovodInternalError, match="grouped_allreduce.g_2of3") as caught:
            if blocking:
                hvd.grouped_allreduce_(tensors, name="g", op=hvd.Sum)
            else:
                hvd.synchronize(hvd.grouped_allreduce_async_(tensors, name="g", op=hvd.Sum))
        assert type(caught.value).__name__ == "MismatchError"
        sums = [tensors[0].tolist(), tensors[2].tolist()]
        thread.join()
    hvd.barrier()
    after = hvd.grouped_allreduce(_ones(3), name="g", op=hvd.Sum)[1].tolist()  # the job goes on
    return after, None if hvd.rank() else (sums, len(handles._left))


@pytest.mark.parametrize("blocking", [True, False])
def test_a_failure_of_one_is_raised_when_all_are_done(run_ranks, blocking):
    assert run_ranks(_one_fails, 2, blocking).results == [([2.0] * 3, ([[2.0] * 2, [2.0] * 4], 0)), ([2.0] * 3, None)]


def _one_is_refused(blocking):
    """The library refuses the second of rank 0's group. The first is in flight, and ends when rank 1 brings it."""
    hvd.init()
    tensors = _ones(3)
    if hvd.rank() == 0:
        taken = _submit(torch.ones(1), "g_2of3")
        with pytest.raises(ValueError, match="grouped_allreduce.g_2of3"):
            (hvd.grouped_allreduce_ if blocking else hvd.grouped_allreduce_async_)(tensors, name="g", op=hvd.Sum)
        (first,) = handles._left.values()
        assert first.poll() == 0
        hvd.barrier()
    else:
        hvd.barrier()
        taken, first = _submit(torch.ones(1), "g_2of3"), _submit(tensors[0], "g_1of3")
    for call in (taken, first):
        call.wait()
        call.release()
    after = hvd.grouped_allreduce(_ones(3), name="g", op=hvd.Sum)[2].tolist()  # the names are free again
    return [tensor.tolist() for tensor in tensors], after


@pytest.mark.parametrize("blocking", [True, False])
def test_one_that_the_library_refuses_leaves_those_before_it_in_flight(run_ranks, blocking):
    assert run_ranks(_one_is_refused, 2, blocking).results == [([[2.0] * 2, [1.0] * 3, [1.0] * 4], [2.0] * 4)] * 2


class Alarm(Exception):
    """What the handler of SIGALRM raises."""


def _ring(_, frame):
    """Raises as soon as both of the group's operations are in flight."""
    while frame is not None and frame.f_code is not group.Group.block.__code__:
        frame = frame.f_back
    if frame is not None and all(call.core_handle for call in frame.f_locals["self"].calls):
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
def test_an_interrupted_group_is_left_in_flight(run_ranks, name):
    rest = ([[2.0] * 2, [2.0] * 3], {6.0}, 0 if name is None else None)
    assert run_ranks(_interrupted_by_a_signal, 2, name).results == [(2, *rest), (None, *rest)]


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


def test_threads_have_groups_of_their_own(run_ranks):
    expected = {(thread, turn): [6.0 * (thread + i) for i in range(5)] for thread in range(4) for turn in range(10)}
    assert run_ranks(_threads, 2).results == [expected] * 2


def _forked_while_another_thread_submits():
    hvd.init()
    has_it, is_over = threading.Event(), threading.Event()

    def submit():
        with group._lock:
            has_it.set()
            is_over.wait()

    thread = threading.Thread(target=submit)
    thread.start()
    has_it.wait()
    child = os.fork()
    if child == 0:
        try:
            hvd.grouped_allreduce(_ones(2))
        except hvd.HorovodInternalError:
            os._exit(42)
        os._exit(0)
    is_over.set()
    thread.join()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_forked_child_waits_for_no_thread_of_its_parent(run_ranks):
    assert run_ranks(_forked_while_another_thread_submits, 0).results == [42]


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


def test_shutdown_ends_a_group_in_flight(run_ranks):
    assert run_ranks(_started_and_shut_down, 2).results == [("AbortedError", None, 0), None]


def _started_on_one_rank_run_on_the_other():
    hvd.init()
    if hvd.rank() == 0:
        outputs = hvd.grouped_allreduce(_ones(2), name="x", op=hvd.Sum)
    else:
        outputs = hvd.synchronize(hvd.grouped_allreduce_async(_ones(2), name="x", op=hvd.Sum))
    return [each.tolist() for each in outputs]


def test_a_named_group_may_be_synchronous_on_some_ranks_only(run_ranks):
    assert run_ranks(_started_on_one_rank_run_on_the_other, 2).results == [[[2.0] * 2, [2.0] * 3]] * 2


def _joined():
    hvd.init()
    sums = [[each.tolist() for each in hvd.grouped_allreduce(_ones(2), name="g", op=hvd.Sum)] for _ in range(1 + hvd.rank())]
    return sums, hvd.join()


def test_zeros_of_a_rank_that_has_joined_take_part(run_ranks):
    both, one = [[2.0] * 2, [2.0] * 3], [[1.0] * 2, [1.0] * 3]
    assert run_ranks(_joined, 2).results == [([both], 1), ([both, one], 1)]
