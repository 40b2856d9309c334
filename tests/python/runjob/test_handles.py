"""python/runjob/handles.py: handles, names on the wire, threads."""

import sys
import threading

import pytest
import torch

import runjob.torch as hvd
from runjob._library import library
from runjob import handles


def _numbers():
    hvd.init()
    first = hvd.allreduce_async(torch.ones(1), op=hvd.Sum)
    second = hvd.broadcast_async(torch.ones(1), 0)
    outputs = [hvd.synchronize(handle) for handle in (first, second, first, 12345)]
    return first, second, [None if output is None else output.item() for output in outputs]


def test_handles_count_from_one_and_are_spent_by_synchronize(run_ranks):
    assert run_ranks(_numbers, 2).results == [(1, 2, [2.0, 1.0, None, None])] * 2


def test_poll_of_an_unknown_handle_names_it():
    with pytest.raises(ValueError, match="handle 999 is unknown"):
        hvd.poll(999)


def _poll():
    hvd.init()
    seen = []
    if hvd.rank() == 0:
        handle = hvd.allreduce_async(torch.ones(1), name="late", op=hvd.Sum)
        seen.append(hvd.poll(handle))  # rank 1 has not submitted it: it waits for "go"
        hvd.broadcast(torch.ones(1), 0, name="go")
    else:
        hvd.broadcast(torch.ones(1), 0, name="go")
        handle = hvd.allreduce_async(torch.ones(1), name="late", op=hvd.Sum)
    while not hvd.poll(handle):
        pass
    seen.append(hvd.poll(handle))
    return seen, hvd.synchronize(handle).item()


def test_poll_says_whether_an_operation_is_done(run_ranks):
    assert run_ranks(_poll, 2).results == [([False, True], 2.0), ([True], 2.0)]


def _same_name_twice():
    hvd.init()
    text = ""
    if hvd.rank() == 0:
        first = hvd.allreduce_async(torch.ones(1), name="grad", op=hvd.Sum)
        try:
            hvd.allreduce_async(torch.ones(1), name="grad", op=hvd.Sum)
        except ValueError as error:
            text = str(error)
        hvd.broadcast(torch.ones(1), 0, name="grad")  # another operation's name
    else:
        hvd.broadcast(torch.ones(1), 0, name="grad")
        first = hvd.allreduce_async(torch.ones(1), name="grad", op=hvd.Sum)
    return text, hvd.synchronize(first).item()


def test_a_name_in_flight_is_refused_and_the_first_completes(run_ranks):
    (text, first), (_, second) = run_ranks(_same_name_twice, 2).results
    assert "allreduce.grad" in text
    assert (first, second) == (2.0, 2.0)


def _shut_down_in_flight():
    hvd.init()
    kinds = []
    if hvd.rank() == 0:
        handle = hvd.allreduce_async(torch.ones(1), name="never")
        hvd.shutdown()
        for attempt in (lambda: hvd.synchronize(handle), lambda: hvd.allreduce(torch.ones(1))):
            try:
                attempt()
            except hvd.HorovodInternalError as error:
                kinds.append(type(error).__name__)
        kinds.append(hvd.synchronize(handle))
    else:   # stays until rank 0 has left, which ends its barrier
        try:
            hvd.barrier()
        except hvd.HorovodInternalError as error:
            kinds.append(type(error).__name__)
    return kinds


def test_shutdown_ends_what_is_in_flight(run_ranks):
    assert run_ranks(_shut_down_in_flight, 2).results == [["AbortedError", "NotInitializedError", None], ["AbortedError"]]


def _tensors_are_dropped_early():
    import gc

    hvd.init()
    started = [hvd.allreduce_async(torch.full((4096,), float(i)), name=str(i), op=hvd.Sum) for i in range(50)]
    gc.collect()
    scribble = [torch.full((4096,), -1.0) for _ in range(100)]
    return all(bool((hvd.synchronize(handle) == 2.0 * i).all()) for i, handle in enumerate(started)) and len(scribble) == 100


def test_tensors_live_until_the_operation_is_done(run_ranks):
    assert run_ranks(_tensors_are_dropped_early, 2).results == [True, True]


def _many_threads():
    hvd.init()
    sums = {}

    def work(thread: int) -> None:
        for turn in range(25):
            tensor = torch.tensor([thread + turn + hvd.rank()])
            sums[thread, turn] = hvd.allreduce(tensor, name=f"{thread}.{turn}", op=hvd.Sum).item()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sums


def test_threads_share_a_rank(run_ranks):
    expected = {(thread, turn): 2 * (thread + turn) + 1 for thread in range(4) for turn in range(25)}
    assert run_ranks(_many_threads, 2).results == [expected] * 2


def _two_threads_wait_for_one_handle():
    hvd.init()
    outputs = []
    for turn in range(20):
        handle = hvd.allreduce_async(torch.ones(1), name=str(turn), op=hvd.Sum)
        threads = [threading.Thread(target=lambda: outputs.append(hvd.synchronize(handle))) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return sorted(0.0 if output is None else output.item() for output in outputs)


def test_one_of_two_waiting_threads_gets_the_output(run_ranks):
    assert run_ranks(_two_threads_wait_for_one_handle, 2).results == [[0.0] * 20 + [2.0] * 20] * 2


def _another_thread_runs_meanwhile():
    """Rank 0's main thread waits for "late"; rank 1 submits that once rank 0's other thread has sent "go"."""
    hvd.init()
    if hvd.rank() == 1:
        hvd.broadcast(torch.ones(1), 0, name="go")
        return hvd.allreduce(torch.ones(1), name="late", op=hvd.Sum).item()
    sys.setswitchinterval(1000)  # no thread is made to give up the GIL: it must let go of it itself
    waiting = threading.Event()

    def send_go():
        waiting.wait()
        hvd.broadcast(torch.ones(1), 0, name="go")

    thread = threading.Thread(target=send_go)
    thread.start()
    handle = hvd.allreduce_async(torch.ones(1), name="late", op=hvd.Sum)
    waiting.set()
    assert library().runjob_wait(handles._table.operations[handle].core_handle, -1.0) == 0
    thread.join()
    return hvd.synchronize(handle).item()


def test_another_python_thread_runs_while_one_waits(run_ranks):
    assert run_ranks(_another_thread_runs_meanwhile, 2).results == [2.0, 2.0]
