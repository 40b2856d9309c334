"""python/runjob/wire_names.py: what operations without a name are called, alone and among threads."""

import threading

import pytest
import torch
from recorded_names import recorded

import runjob.torch as hvd
from runjob import calls
from runjob.wire_names import TURNS, Turn, Turns


def _names():
    hvd.init()
    with recorded(calls.ALLREDUCE) as seen, recorded(calls.BROADCAST) as of_broadcasts:
        for turn in range(TURNS + 2):
            if turn == 1:  # other operations and named ones do not count
                hvd.broadcast(torch.ones(1), 0)
                hvd.allreduce(torch.ones(1), name="a")
                hvd.synchronize(hvd.allreduce_async(torch.ones(1)))
                hvd.synchronize(hvd.allreduce_async(torch.ones(1), name="a"))
            hvd.allreduce_(torch.ones(1))
        hvd.shutdown()
        hvd.init()
        hvd.allreduce(torch.ones(1, requires_grad=True))
        hvd.synchronize(hvd.allreduce_async(torch.ones(1)))
    return seen, of_broadcasts


def test_names_are_the_operation_and_the_users_or_a_number(run_ranks):
    turns = [f"allreduce.noname.sync.{turn}" for turn in range(TURNS)]
    others = ["allreduce.a", "allreduce.noname.1", "allreduce.a"]
    expected = [turns[0], *others, *turns[1:], *turns[:2], turns[0], "allreduce.noname.1"]
    assert run_ranks(_names, 2).results == [(expected, ["broadcast.noname.sync.0"])] * 2


def _begun(turns, count):
    begun = [Turn() for _ in range(count)]
    names = [turns.begin(turn) for turn in begun]
    assert len(set(names)) == count
    return begun, names


def _begin_in_a_thread(turns, seen):
    """A thread that takes the next turn and then tells its name; and that turn."""
    turn = Turn()
    thread = threading.Thread(target=lambda: seen.append(turns.begin(turn)))
    thread.start()
    return thread, turn


def test_a_name_is_given_again_when_the_call_that_had_it_is_over():
    turns, seen = Turns("allreduce"), []
    begun, names = _begun(turns, TURNS)
    thread, _ = _begin_in_a_thread(turns, seen)
    for turn in begun[1:]:
        turns.end(turn)  # other names do not serve
    while begun[0].over is None and thread.is_alive():
        pass
    seen.append("ended")
    turns.end(begun[0])
    thread.join()
    assert seen == ["ended", names[0]]


def test_an_operation_that_was_left_in_flight_is_waited_for_by_the_next_of_its_name():
    turns, seen = Turns("allreduce"), []
    begun, names = _begun(turns, TURNS)
    turns.leave(begun[1], lambda: seen.append("waited before"))
    thread, _ = _begin_in_a_thread(turns, seen)
    while begun[0].over is None and thread.is_alive():
        pass
    turns.leave(begun[0], lambda: seen.append("waited meanwhile"))
    thread.join()
    assert turns.begin(Turn()) == names[1]
    assert seen == ["waited meanwhile", names[0], "waited before"]


def test_a_call_that_was_interrupted_while_it_waited_lets_the_next_go():
    turns = Turns("allreduce")
    begun, names = _begun(turns, TURNS)
    interrupted = Turn()

    def interrupt():
        raise KeyboardInterrupt

    turns.leave(begun[0], interrupt)
    try:
        turns.begin(interrupted)
    except KeyboardInterrupt:
        turns.end(interrupted)
    for turn in begun:
        turns.end(turn)
    following, again = _begun(turns, TURNS)
    assert again == names[1:] + names[:1]


def test_a_turn_that_never_began_may_end():
    turns = Turns("allreduce")
    turns.end(Turn())
    assert turns.begin(Turn()) == b"allreduce.noname.sync.0"


def _refused_on_one_rank():
    hvd.init()
    rows = torch.arange(4) + 10 * hvd.rank()
    outputs = []
    for alltoall in (hvd.alltoall, lambda *arguments: hvd.synchronize(hvd.alltoall_async(*arguments))):
        if hvd.rank() == 0:
            with pytest.raises(ValueError, match="do not divide the 4 rows"):
                alltoall(rows, torch.tensor([1, 1]))
        outputs.append(alltoall(rows, torch.tensor([2, 2]))[0].tolist())
    return outputs


def test_a_call_that_is_refused_on_one_rank_does_not_count(run_ranks, monkeypatch):
    monkeypatch.setenv("RUNJOB_STALL_SHUTDOWN_TIME_SECONDS", "60")  # with other names the ranks would wait for ever
    assert run_ranks(_refused_on_one_rank, 2).results == [[[0, 1, 10, 11]] * 2, [[2, 3, 12, 13]] * 2]


def _more_threads_than_names():
    hvd.init()
    sums = []

    def work():
        for _ in range(5):
            sums.append(hvd.allreduce(torch.ones(3), op=hvd.Sum).sum().item())
            hvd.barrier()

    threads = [threading.Thread(target=work) for _ in range(TURNS + 10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sums


def test_threads_may_be_more_than_names(run_ranks):
    assert run_ranks(_more_threads_than_names, 2).results == [[6.0] * 5 * (TURNS + 10)] * 2
