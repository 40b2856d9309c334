"""send(), recv() and batch_isend_irecv() on groups of runjob's."""

import functools
import os
import signal
import time
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist

import runjob.torch.distributed  # noqa: F401  # registers the backend with any PyTorch


def caught(run):
    """The text of the error of `run`."""
    try:
        run()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


def in_group(run):
    """Runs a function of each rank in a group of all of them."""

    @functools.wraps(run)
    def wrapped(*arguments):
        dist.init_process_group("runjob", timeout=timedelta(seconds=2 if run.__name__ == "nobody_sends" else 100))
        try:
            return run(*arguments)
        finally:
            if dist.is_initialized():
                dist.destroy_process_group()

    return wrapped


def pattern(count, rank, dtype=torch.float32):
    return ((torch.arange(count) * 3 + rank) % 100).to(dtype)


@in_group
def pass_around():
    """Each rank sends to the next one, short and long, in pieces and not, and of odd dtypes."""
    rank, size = dist.get_rank(), dist.get_world_size()
    following, previous = (rank + 1) % size, (rank - 1) % size
    wrong = []
    for count, dtype in [(1, torch.float32), (0, torch.int64), (100_003, torch.bfloat16), (2_000_000, torch.float32), (7, torch.uint32)]:
        sent, received = pattern(count, rank, dtype), torch.zeros(count, dtype=dtype)
        work = dist.isend(sent, following, tag=count)
        dist.recv(received, previous, tag=count)
        work.wait()
        if received.tolist() != pattern(count, previous, dtype).tolist():
            wrong.append((count, dtype))
    columns = torch.zeros(4, 6)
    works = [dist.isend(pattern(24, rank).reshape(4, 6).t(), following), dist.irecv(columns.t(), previous)]
    for work in works:
        work.wait()
    if not torch.equal(columns.t(), pattern(24, previous).reshape(4, 6).t().reshape(6, 4)):
        wrong.append("columns")
    # A view that negates has other values than its memory.
    sent, received = torch._neg_view(torch.full((3,), 1.0 + rank)), torch.zeros(3)
    work = dist.isend(sent, following)
    dist.recv(received, previous)
    work.wait()
    if received.tolist() != [-1.0 - previous] * 3:
        wrong.append("negated")
    return wrong


def test_tensors_go_from_rank_to_rank(call_ranks):
    assert call_ranks(pass_around, 3) == [[], [], []]


@in_group
def from_anybody():
    rank, size = dist.get_rank(), dist.get_world_size()
    if rank != 0:
        dist.send(torch.tensor([float(rank)]), 0)
        return None
    seen = []
    for _ in range(1, size):
        tensor = torch.zeros(1)
        seen.append((dist.recv(tensor), tensor.item()))
    return sorted(seen)


def test_a_receive_from_any_rank_returns_the_sender(call_ranks):
    assert call_ranks(from_anybody, 3)[0] == [(1, 1.0), (2, 2.0)]


@in_group
def in_a_batch():
    rank, size = dist.get_rank(), dist.get_world_size()
    tensors = [torch.full((3,), float(rank)), torch.zeros(3), torch.zeros(3)]
    others = [other for other in range(size) if other != rank]
    operations = [dist.P2POp(dist.isend, tensors[0], other) for other in others]
    operations += [dist.P2POp(dist.irecv, tensor, other) for tensor, other in zip(tensors[1:], others)]
    for work in dist.batch_isend_irecv(operations):
        work.wait()
    return [tensor[0].item() for tensor in tensors[1:]] == [float(other) for other in others]


def test_a_batch_of_sends_and_receives(call_ranks):
    assert call_ranks(in_a_batch, 3) == [True, True, True]


@in_group
def beside_collectives():
    """In a group whose order is not that of the job, with an allreduce of all ranks in between."""
    rank = dist.get_rank()
    group = dist.new_group([0, 2], backend="runjob")
    for turn in range(20):
        total = torch.ones(1000)
        work = dist.all_reduce(total, async_op=True)
        tensor = torch.full((50_000,), float(turn))
        if rank == 0:
            dist.send(tensor, 2, group=group)
        elif rank == 2:
            dist.recv(tensor.zero_(), 0, group=group)
        work.wait()
        if tensor[-1].item() != turn or total[0].item() != 3:
            return f"turn {turn}"
    return "right"


def test_messages_beside_collectives(call_ranks):
    assert call_ranks(beside_collectives, 3) == ["right", "right", "right"]


@in_group
def first_one_before_a_collective():
    """Rank 1 has no message in flight when rank 0 sends its first one, and waits for it in a collective."""
    rank, tensor = dist.get_rank(), torch.zeros(10)
    if rank == 0:
        dist.send(torch.ones(10), 1)
    dist.all_reduce(torch.ones(1))
    if rank == 1:
        dist.recv(tensor, 0)
    return tensor.sum().item() if rank == 1 else 10.0


def test_a_short_message_does_not_wait_for_its_receive(call_ranks):
    assert call_ranks(first_one_before_a_collective, 2) == [10.0, 10.0]


@in_group
def longer_than_expected():
    rank = dist.get_rank()
    if rank == 0:
        return caught(lambda: dist.send(torch.zeros(100_000), 1, tag=4))
    return caught(lambda: dist.recv(torch.zeros(10), 0, tag=4))


def test_a_message_that_is_too_long_is_an_error_on_both_ranks(call_ranks):
    sender, receiver = call_ranks(longer_than_expected, 2)
    assert "send to rank 1 of group 0" in sender and "400000 bytes" in sender and "room for 40" in sender
    assert "recv from rank 0 of group 0" in receiver and "400000 bytes" in receiver and "room for 40" in receiver


@in_group
def nobody_sends():
    if dist.get_rank() == 1:
        time.sleep(3)
        return None
    return caught(lambda: dist.recv(torch.zeros(10), 1))


def test_a_receive_ends_after_the_time_limit_of_the_group(call_ranks):
    assert "recv from rank 1 of group 0 is not done after 2 s" in call_ranks(nobody_sends, 2)[0]


def peer_ends(how):
    dist.init_process_group("runjob")
    rank, tensor = dist.get_rank(), torch.zeros(1)
    if rank == 1:
        dist.send(tensor, 0)
        if how == "raises":
            raise ValueError("rank 1 has a bad batch")
        os.kill(os.getpid(), signal.SIGKILL)
    dist.recv(tensor, 1)
    start = time.monotonic()
    text = caught(lambda: dist.recv(tensor, 1))
    return text, time.monotonic() - start


@pytest.mark.parametrize("how", ["raises", "is killed"])
def test_a_receive_ends_with_its_peer(run_ranks, monkeypatch, how):
    monkeypatch.setenv("RUNJOB_CONTINUE_ON_FAILURE", "1")  # rank 0 may return
    job = run_ranks(peer_ends, 2, how, status=None)
    text, _ = job.results[0]
    assert ("ValueError: rank 1 has a bad batch" if how == "raises" else "rank 1") in text


@in_group
def peer_leaves():
    rank, tensor = dist.get_rank(), torch.zeros(1)
    if rank == 1:
        dist.send(tensor + 5, 0)
        dist.destroy_process_group()
        return None
    time.sleep(0.5)
    dist.recv(tensor, 1)
    return tensor.item(), caught(lambda: dist.recv(tensor, 1))


def test_what_a_rank_has_sent_before_it_leaves_arrives(call_ranks):
    value, text = call_ranks(peer_leaves, 2)[0]
    assert value == 5.0
    assert "rank 1" in text


@in_group
def wrong_calls():
    group, tensor = dist.group.WORLD, torch.zeros(1)
    if dist.get_rank() == 1:
        return None
    return [
        caught(lambda: group.send([tensor], 5, 0)),
        caught(lambda: group.recv([tensor, tensor], 1, 0)),
        caught(lambda: group.send([tensor], 0, 0) and group.send([tensor], 0, 0).source_rank()),
    ]


def test_wrong_calls_are_errors_at_once(call_ranks):
    no_rank, two_tensors, no_source = call_ranks(wrong_calls, 2)[0]
    assert "send to rank 5 of group 0" in no_rank and "no rank 5" in no_rank
    assert "takes one tensor" in two_tensors
    assert "has no source" in no_source
