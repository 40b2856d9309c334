"""How a group ends on all its ranks, by its time limit or by abort(), and what goes on then."""

import gc
import os
import socket
import time
from datetime import timedelta

import torch
import torch.distributed as dist

import runjob.torch as hvd
import runjob.torch.distributed  # noqa: F401  # registers the backend with any PyTorch

LIMIT = timedelta(seconds=1)
#: After the time limit: far below the limits of everything else. A member answers within milliseconds, but the machine may
#: be busy.
SOON_SECONDS = 20.0


def caught(run):
    """The text of the error of `run`, and the seconds that it took."""
    begin = time.monotonic()
    try:
        run()
        text = "no error"
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
    return text, time.monotonic() - begin


def made():
    """This rank, the store, and a group of all ranks with the limit."""
    dist.init_process_group("runjob", timeout=timedelta(minutes=3))
    store = dist.distributed_c10d._get_default_store()
    return dist.get_rank(), store, dist.new_group(list(range(dist.get_world_size())), timeout=LIMIT)


def summed(group=None):
    total = torch.ones(3)
    dist.all_reduce(total, group=group)
    return total[0].item()


def await_all(store, what):
    """Blocks until all ranks have come here, whatever has happened to their groups. `what`: another one each time, since the
    store stays."""
    store.set(f"{what}/{dist.get_rank()}", "")
    store.wait([f"{what}/{rank}" for rank in range(dist.get_world_size())])


def one_never_calls():
    rank, store, group = made()
    pair = dist.new_group([1, 2])
    before = summed(group), summed()
    first = caught(lambda: summed(group)) if rank != 2 else None
    await_all(store, "one_never_calls")
    later = [
        caught(lambda: summed(group))[0],
        caught(lambda: dist.all_reduce(torch.zeros(3), group=group, async_op=True).wait())[0],
    ]
    goes_on = summed(), summed(pair) if rank else None
    dist.destroy_process_group()
    dist.init_process_group("runjob")
    again = summed()
    dist.destroy_process_group()
    return before, first, later, goes_on, again


def test_a_rank_that_never_calls_is_named_on_all_ranks(call_ranks):
    results = call_ranks(one_never_calls, 3)
    for rank, (before, first, later, goes_on, again) in enumerate(results):
        assert before == (3.0, 3.0)
        if rank != 2:
            text, seconds = first
            assert "allreduce number 2 of group" in text and "is not done after 1 s, the time limit of the group" in text
            assert "was not submitted by rank 2 on " in text
            assert 0.9 < seconds < LIMIT.total_seconds() + SOON_SECONDS
        assert all("is not done after 1 s" in text for text in later), later
        assert goes_on == (3.0, 2.0 if rank else None)
        assert again == 3.0
    kinds = {first[0].split(":")[0] for _, first, *_ in results[:2]}
    assert kinds <= {"WaitTimeoutError", "AbortedError"} and "WaitTimeoutError" in kinds


def one_calls_something_else():
    rank, store, group = made()
    first = caught(lambda: dist.broadcast(torch.zeros(3), 0, group=group) if rank == 1 else summed(group))
    await_all(store, "one_calls_something_else")
    dist.destroy_process_group()
    return first


def test_a_rank_that_calls_something_else_has_the_error_too(call_ranks):
    for text, seconds in call_ranks(one_calls_something_else, 3):
        assert text.startswith("MismatchError: ") and "the ranks disagree on the kind of operation: allreduce on ranks 0 " in text
        assert seconds < SOON_SECONDS


def one_misses_a_barrier():
    rank, store, _ = made()
    dist.monitored_barrier()
    first = caught(lambda: dist.monitored_barrier(timeout=LIMIT)) if rank != 1 else None
    await_all(store, "one_misses_a_barrier")
    dist.destroy_process_group()
    return first


def test_monitored_barrier_names_the_missing_rank(call_ranks):
    results = call_ranks(one_misses_a_barrier, 3)
    for text, seconds in (results[0], results[2]):
        assert "monitored_barrier number 2 of group" in text and "was not submitted by rank 1 on " in text
        assert seconds < LIMIT.total_seconds() + SOON_SECONDS


def one_aborts():
    hvd.init()  # the job is the program's, and stays
    rank, store, other = made()
    if rank == 0:
        first = caught(summed)
    else:
        time.sleep(0.2)  # rank 0 waits
        first = caught(dist.group.WORLD.abort)
    goes_on = summed(other)
    later = caught(summed)[0]
    await_all(store, "one_aborts")
    dist.destroy_process_group()
    job = hvd.allreduce(torch.ones(1), op=hvd.Sum).item()
    hvd.shutdown()
    return first, goes_on, later, job


def test_abort_ends_the_group_on_all_ranks(call_ranks):
    results = call_ranks(one_aborts, 2)
    (text, seconds), *_ = results[0]
    assert "AbortedError" in text and "its rank 1 called abort()" in text and "not submitted by rank 1" in text
    assert seconds < 0.2 + SOON_SECONDS
    assert results[1][0][0] == "no error"
    for _, goes_on, later, job in results:
        assert (goes_on, job) == (2.0, 2.0)
        assert "its rank 1 called abort()" in later


def a_server_after_its_group():
    """True for rank 0, whose store was the server, if nobody answers at its port once the group is destroyed."""
    gc.collect()
    gc.disable()  # what only a cycle of references keeps would live on
    try:
        dist.init_process_group("runjob")
        dist.all_reduce(torch.ones(1))
        dist.destroy_process_group()
        with socket.socket() as client:
            return client.connect_ex((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))) != 0
    finally:
        gc.enable()


def test_the_store_ends_with_its_group(call_ranks):
    assert call_ranks(a_server_after_its_group, 2)[0]
