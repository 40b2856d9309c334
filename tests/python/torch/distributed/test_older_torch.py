"""What holds with each PyTorch from 2.4 on: packaging/torch_versions.sh runs this file with older ones."""

import os

import pytest
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from both_backends import begin, caught, compared, over
from installed_ranks import run
from torch.nn.parallel import DistributedDataParallel

VERSION = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])


def collectives():
    rank, size = dist.get_rank(), dist.get_world_size()
    total = torch.arange(5.0) * (rank + 1)
    dist.all_reduce(total)
    parts = [torch.zeros(2) for _ in range(size)]
    dist.all_gather(parts, torch.full((2,), float(rank)))
    whole = torch.zeros(2 * size)
    dist.all_gather_into_tensor(whole, torch.full((2,), float(rank)))
    out = torch.full((2,), float(rank))
    gathered = [torch.zeros(2) for _ in range(size)]
    dist.gather(out, gathered if rank == 0 else None)
    dist.scatter(out, [torch.full((2,), 1.0 + other) for other in range(size)] if rank == 0 else None)
    objects = [None] * size
    dist.all_gather_object(objects, rank)
    dist.barrier()
    work = dist.all_reduce(out, async_op=True)
    work.wait()
    assert work.is_completed() and objects == list(range(size))
    return [total, *parts, whole, out, *gathered]


def ddp():
    layers = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
    model = DistributedDataParallel(layers, bucket_cap_mb=0.0001)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    generator = torch.Generator().manual_seed(dist.get_rank())
    for _ in range(20):
        optimizer.zero_grad()
        model(torch.randn(6, 8, generator=generator)).square().mean().backward()
        optimizer.step()
    return list(model.parameters())


def functional_collectives():
    group = list(range(dist.get_world_size()))
    values = torch.arange(8.0).reshape(4, 2) * (dist.get_rank() + 1)
    results = [
        functional.all_reduce(values, "sum", group), functional.all_gather_tensor(values, 0, group),
        functional.all_reduce(values + 1, "max", group),
    ]  # fmt: skip
    return [functional.wait_tensor(result) for result in results]


def compare(name):
    return compared(globals()[name])[0]


@pytest.mark.parametrize("program", [collectives, ddp, functional_collectives], ids=lambda program: program.__name__)
def test_a_program_computes_what_it_computes_over_gloo(call_ranks, program):
    assert call_ranks(compare, 2, program.__name__) == [True] * 2


def one_raises():
    begin("runjob")
    step = DistributedDataParallel(torch.nn.Linear(4, 2))
    step(torch.ones(2, 4)).sum().backward()
    if dist.get_rank() == 1:
        raise ValueError("rank 1 has a bad batch")
    return caught(lambda: step(torch.ones(2, 4)).sum().backward())


def test_the_other_rank_gets_the_exception(run_ranks):
    assert "ValueError: rank 1 has a bad batch" in run_ranks(one_raises, 2, status=1).results[0]


def debugging_in_detail():
    os.environ["TORCH_DISTRIBUTED_DEBUG"] = "DETAIL"
    dist.set_debug_level_from_env()
    if VERSION >= (2, 14):
        return over("runjob", lambda: type(dist.group.WORLD).__name__)
    return caught(lambda: begin("runjob"))


def test_hooks_need_a_newer_torch(run_ranks):
    expected = "ProcessGroup" if VERSION >= (2, 14) else "DETAIL, needs PyTorch 2.14 or later; this is"
    for text in run_ranks(debugging_in_detail, 2).results:
        assert expected in text


ASKS_FOR_GLOO = """
import torch, torch.distributed as dist
dist.init_process_group("gloo")
dist.all_reduce(torch.ones(1))
print(type(dist.group.WORLD).__name__)
dist.destroy_process_group()
import os
os._exit(0)
"""


@pytest.mark.skipif(VERSION < (2, 5), reason="PyTorch 2.5 is the first that calls packages when it is imported")
def test_the_option_acts_or_warns(installed):
    lines, errors = run(installed, ASKS_FOR_GLOO, "--torch-backend", "runjob")
    assert lines == ["RunjobProcessGroup" if VERSION >= (2, 14) else "ProcessGroup"] * 2
    assert errors.count("--torch-backend runjob has no effect") == (0 if VERSION >= (2, 14) else 2)
