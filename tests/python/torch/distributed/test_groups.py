"""Groups of some ranks, in any order, several of the same ranks, and jobs that runjob's launcher has not started."""

import subprocess
import sys

import torch
import torch.distributed as dist

import ranks
import runjob.torch.distributed  # noqa: F401  # registers the backend with any PyTorch
from runjob.torch.distributed import store_exchange


def some_groups():
    dist.init_process_group("runjob")
    rank = dist.get_rank()
    everyone_again = dist.new_group([0, 1, 2])
    backwards = dist.new_group([2, 0], sort_ranks=False)
    results = {}
    if rank != 1:
        parts = [torch.zeros(1) for _ in range(2)]
        dist.all_gather(parts, torch.full((1,), float(rank)), group=backwards)
        results["gathered"] = torch.cat(parts).tolist()
        sent = torch.full((1,), float(rank))
        dist.broadcast(sent, 2, group=backwards)
        results["broadcast"] = sent.item()
        dist.destroy_process_group(backwards)
    # The same operation in two groups of the same ranks, in another order on each rank.
    first, second = torch.full((4,), 1.0), torch.full((4,), 10.0)
    calls = [(first, dist.group.WORLD), (second, everyone_again)]
    works = [dist.all_reduce(tensor, group=group, async_op=True) for tensor, group in (calls if rank else reversed(calls))]
    for work in works:
        work.wait()
    results["sums"] = first[0].item(), second[0].item()
    dist.destroy_process_group()
    dist.init_process_group("runjob")
    again = torch.ones(1)
    dist.all_reduce(again)
    results["again"] = again.item()
    dist.destroy_process_group()
    return results


def test_groups_of_some_ranks_in_any_order(call_ranks):
    for rank, results in enumerate(call_ranks(some_groups, 3)):
        assert results["sums"] == (3.0, 30.0)
        assert results["again"] == 3.0
        if rank != 1:
            assert results["gathered"] == [2.0, 0.0]
            assert results["broadcast"] == 2.0


UNDER_TORCHRUN = """
import os
import torch, torch.distributed as dist
import runjob.torch as hvd
import runjob.torch.distributed
dist.init_process_group("runjob")
total = torch.ones(1)
dist.all_reduce(total)
group = dist.new_group([0, 1])
line = f"{dist.get_rank()} {hvd.rank()} {hvd.size()} {hvd.local_size()} {total.item()}\\n"
os.write(1, line.encode())  # as one write: both processes print to one pipe
dist.destroy_process_group()
"""


def test_torchrun_starts_a_job_that_meets_at_its_store(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(UNDER_TORCHRUN)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(script)]
    done = subprocess.run(command, env=ranks.environment(), capture_output=True, text=True, timeout=ranks.TIMEOUT_SECONDS)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split("\n")) == ["", "0 0 2 2 2.0", "1 1 2 2 2.0"]


OVER_A_STORE = """
import os, sys
import torch, torch.distributed as dist
import runjob.torch as hvd
rank, size = int(sys.argv[2]), 2
store = dist.TCPStore("127.0.0.1", int(sys.argv[1]), is_master=False)
count = 0
def exchange(blob):
    global count
    count += 1
    store.set(f"{count}/{rank}", blob)
    return [store.get(f"{count}/{other}") for other in range(size)]
hvd.init(exchange=exchange, rank=rank, size=size)
print(hvd.rank(), hvd.allreduce(torch.full((70_000,), rank + 1.0), op=hvd.Sum)[-1].item())
"""


def test_a_store_serves_init_as_an_exchange():
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    command = [sys.executable, "-c", OVER_A_STORE, str(store.port)]
    processes = [
        subprocess.Popen([*command, str(rank)], env=ranks.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for rank in range(2)
    ]
    for rank, process in enumerate(processes):
        output, errors = process.communicate(timeout=ranks.TIMEOUT_SECONDS)
        assert output == f"{rank} 3.0\n", errors


def test_rank_0_does_not_wait_for_a_rank_that_never_reads():
    """It has the bytes of both, and its own limit of an hour does not count for what the other one does afterwards."""
    store = dist.HashStore()
    store.set("runjob/0/1", b"of rank 1, which ends before it reads")
    answers = store_exchange.over_store(store, 0, 2, 3600, "a group")(b"of rank 0")
    assert answers == [b"of rank 0", b"of rank 1, which ends before it reads"]
