"""PyTorch exports hundreds of symbols of a Gloo of its own: both work in one process, also at the same time."""

import torch
import torch.distributed

import runjob.torch as hvd


def both_at_once():
    hvd.init()
    torch.distributed.init_process_group("gloo")
    theirs = torch.full((100_000,), float(hvd.rank() + 1))
    ours = theirs.clone()
    for step in range(20):
        handle = hvd.allreduce_async_(ours, op=hvd.Average, name=f"ours{step}")
        work = torch.distributed.all_reduce(theirs, async_op=True)
        hvd.synchronize(handle)
        work.wait()
        theirs /= hvd.size()
    torch.distributed.destroy_process_group()
    hvd.allreduce_(ours, op=hvd.Average)
    return ours.unique().tolist(), theirs.unique().tolist()


def test_both_average(call_ranks):
    assert call_ranks(both_at_once, 3) == [([2.0], [2.0])] * 3
