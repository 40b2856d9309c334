"""Calls that no group can carry out: each is an error, and none hangs."""

import os
import signal
import threading
from datetime import timedelta

import torch
import torch.distributed as dist
from both_backends import caught, over

import runjob.torch as hvd


def roots_that_do_not_exist():
    def run():
        rank, part = dist.get_rank(), torch.zeros(2)
        lists = [torch.zeros(2), torch.zeros(2)]
        texts = [
            caught(lambda: dist.broadcast(torch.zeros(2), group_src=2)),
            caught(lambda: dist.reduce(torch.zeros(2), group_dst=-1)),
            caught(lambda: dist.gather(part, None, group_dst=7)),
            caught(lambda: dist.scatter(part, None, group_src=2)),
        ]
        total = torch.ones(1)
        dist.all_reduce(total)  # the group goes on
        dist.gather(torch.full((2,), 1.0 + rank), lists if rank == 1 else None, group_dst=1)
        return texts, total.item(), torch.cat(lists).tolist()

    return over("runjob", run)


def test_a_root_that_does_not_exist_is_named(call_ranks):
    for rank, (texts, total, gathered) in enumerate(call_ranks(roots_that_do_not_exist, 2)):
        for text, root in zip(texts, (2, -1, 7, 2)):
            assert f"ValueError: the root {root} is not in group" in text
            assert "which has the ranks 0 to 1" in text
        assert total == 2.0
        assert gathered == ([1.0, 1.0, 2.0, 2.0] if rank else [0.0] * 4)


def closed_groups():
    def run():
        group = dist.new_group()
        keeps = group  # a program may keep what it has destroyed
        dist.all_reduce(torch.ones(1), group=group)
        dist.destroy_process_group(group)
        texts = [
            caught(lambda: dist.all_reduce(torch.ones(1), group=keeps)),
            caught(lambda: keeps.allreduce([torch.ones(1)], dist.AllreduceOptions())),
            caught(lambda: keeps.barrier(dist.BarrierOptions()).wait()),
        ]
        dist.barrier()
        return texts

    return over("runjob", run)


def test_a_destroyed_group_refuses_calls(call_ranks):
    for texts in call_ranks(closed_groups, 2):
        assert "Group" in texts[0]  # PyTorch's own
        assert "the group has ended, because it was destroyed" in texts[1]
        assert "the group has ended, because it was destroyed" in texts[2]


def a_child_uses_the_group():
    """The text that a forked child gets, from a pipe."""
    dist.init_process_group("runjob", timeout=timedelta(seconds=30))
    dist.all_reduce(torch.ones(1))
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, "\n".join([
            caught(lambda: dist.all_reduce(torch.ones(1))), caught(lambda: dist.barrier()),
            caught(lambda: dist.broadcast(torch.ones(1), 0, async_op=True).wait()),
        ]).encode())  # fmt: skip
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        texts = pipe.read().splitlines()
    os.waitpid(child, 0)
    total = torch.ones(1)
    dist.all_reduce(total)
    dist.destroy_process_group()
    return texts, total.item()


def test_a_forked_child_gets_an_error_and_the_rank_goes_on(run_ranks):
    for texts, total in run_ranks(a_child_uses_the_group, 2).results:
        assert len(texts) == 3
        for text in texts:
            assert "NotInitializedError" in text
        assert total == 2.0


def another_world():
    """The ranks of the job, in another order."""
    hvd.init()
    store = dist.TCPStore("127.0.0.1", int(os.environ["MASTER_PORT"]), 2, hvd.rank() == 0, timeout=timedelta(seconds=30))
    text = caught(lambda: dist.init_process_group("runjob", store=store, rank=1 - hvd.rank(), world_size=2))
    total = hvd.allreduce(torch.ones(1), op=hvd.Sum, name="x").item()
    store.set(f"over {hvd.rank()}", "")
    store.wait(["over 0", "over 1"])  # rank 0 has the store
    hvd.shutdown()
    return text, total


def test_a_world_with_other_ranks_is_refused(run_ranks):
    for rank, (text, total) in enumerate(run_ranks(another_world, 2).results):
        assert f"this process is rank {rank} of the 2 ranks of a job of runjob, and cannot be rank {1 - rank} of torch.dist" in text
        assert total == 2.0


def job_of_the_program():
    """A program that has joined the job itself keeps it when torch.distributed's groups are gone."""
    hvd.init()
    results = []
    for _ in range(2):
        results.append(over("runjob", lambda: dist.all_reduce(torch.ones(1)) or hvd.size()))
    results.append(hvd.allreduce(torch.ones(1), op=hvd.Sum, name="x").item())
    hvd.shutdown()
    return results


def test_the_job_of_the_program_goes_on(call_ranks):
    assert call_ranks(job_of_the_program, 2) == [[2, 2, 2.0]] * 2


def interrupted():
    """Rank 1 interrupts rank 0, which waits for it in a collective."""
    dist.init_process_group("runjob", timeout=timedelta(minutes=3))
    store = dist.distributed_c10d._get_default_store()
    if dist.get_rank():
        process = int(store.get("process"))
        store.wait(["rank 0 waits"])
        os.kill(process, signal.SIGINT)
        store.wait(["rank 0 was interrupted"])
        return None
    store.set("process", str(os.getpid()))
    threading.Timer(0.2, lambda: store.set("rank 0 waits", "")).start()
    try:
        dist.all_reduce(torch.ones(1))
    except KeyboardInterrupt as error:
        result = type(error).__name__
    store.set("rank 0 was interrupted", "")
    return result


def test_ctrl_c_ends_a_collective(run_ranks):
    assert run_ranks(interrupted, 2, status=None).results[0] == "KeyboardInterrupt"
