"""FSDP, DTensor, tensor parallelism and pipelines: the same bits over runjob as over Gloo."""

import pytest
import torch
import torch.distributed as dist
from both_backends import compared
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecision, MixedPrecisionPolicy, ShardingStrategy, fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe
from torch.distributed.tensor import Partial, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    SequenceParallel,
    loss_parallel,
    parallelize_module,
)
from torch.nn.parallel import DistributedDataParallel


def layers():
    return nn.Sequential(nn.Linear(8, 12), nn.ReLU(), nn.Linear(12, 10), nn.ReLU(), nn.Linear(10, 4))


def inputs_of(steps, differ=True):
    generator = torch.Generator().manual_seed(dist.get_rank() if differ else 5)
    return [torch.randn(6, 8, generator=generator) for _ in range(steps)]


def trained(model, after_backward=lambda: None, differ=True):
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    losses = []
    for inputs in inputs_of(4, differ):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs).float(), inputs[:, :4])
        loss.backward()
        after_backward()
        optimizer.step()
        losses.append(loss.detach())
    assert losses[0] != losses[-1]
    return [*model.parameters(), *losses]


def fsdp1(**options):
    model = FullyShardedDataParallel(layers(), device_id=torch.device("cpu"), **options)
    trained(model)
    with FullyShardedDataParallel.summon_full_params(model):
        return [parameter.detach().clone() for parameter in model.parameters()]


def fsdp1_full_shards():
    return fsdp1()


def fsdp1_shards_of_gradients():
    return fsdp1(sharding_strategy=ShardingStrategy.SHARD_GRAD_OP)


def fsdp1_mixed_precision():
    return fsdp1(mixed_precision=MixedPrecision(param_dtype=torch.bfloat16, reduce_dtype=torch.float32))


def fsdp1_state():
    model = FullyShardedDataParallel(layers(), device_id=torch.device("cpu"))
    trained(model)
    return list(model.state_dict().values())


def fsdp2(model=None, **options):
    model = model or layers()
    for layer in model:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, **options)
    return fully_shard(model, **options)


def fsdp2_full_shards():
    return trained(fsdp2())


def fsdp2_without_resharding():
    return trained(fsdp2(reshard_after_forward=False))


def fsdp2_mixed_precision():
    return trained(fsdp2(mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)))


def fsdp2_clipping():
    model, norms = fsdp2(), []
    after_backward = lambda: norms.append(nn.utils.clip_grad_norm_(model.parameters(), 0.05).full_tensor())  # noqa: E731
    result = trained(model, after_backward)
    assert min(norms) > 0.05
    return [*result, *norms]


def fsdp2_accumulation():
    model = fsdp2()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for number, inputs in enumerate(inputs_of(4)):
        model.set_requires_gradient_sync(number % 2 == 1)
        nn.functional.mse_loss(model(inputs), inputs[:, :4]).backward()
        if number % 2:
            optimizer.step()
            optimizer.zero_grad()
    return list(model.parameters())


def tensor_parallel():
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
    return trained(parallelize_module(layers(), mesh, plan), differ=False)


def sequence_parallel():
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    model = nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 12), nn.ReLU(), nn.Linear(12, 4))
    plan = {
        "0": SequenceParallel(sequence_dim=0),
        "1": ColwiseParallel(input_layouts=Shard(0)),
        "3": RowwiseParallel(output_layouts=Replicate()),
    }
    model = parallelize_module(model, mesh, plan)
    rank, size = dist.get_rank(), dist.get_world_size()
    (inputs,) = inputs_of(1, differ=False)
    nn.functional.mse_loss(model(inputs.chunk(size)[rank]), inputs[:, :4]).backward()
    return [parameter.grad for parameter in model.parameters()]


def parallel_loss():
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    model = parallelize_module(nn.Linear(8, 4), mesh, ColwiseParallel(output_layouts=Shard(-1), use_local_output=False))
    (inputs,) = inputs_of(1, differ=False)
    with loss_parallel():
        loss = nn.functional.cross_entropy(model(inputs), torch.arange(6) % 4)
        loss.backward()
    return [loss, *(parameter.grad for parameter in model.parameters())]


def distributed_tensors():
    """Each change of the way in which a tensor lies on the ranks."""
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    (whole,) = inputs_of(1, differ=False)
    rows = distribute_tensor(whole, mesh, [Shard(0)])
    columns = rows.redistribute(mesh, [Shard(1)])
    everywhere = columns.redistribute(mesh, [Replicate()])
    parts = rows.t() @ rows  # each rank has a term of the sum
    assert parts.placements == (Partial(),)
    return [
        rows.to_local(), columns.to_local(), everywhere.to_local(), parts.redistribute(mesh, [Replicate()]).to_local(),
        parts.redistribute(mesh, [Shard(0)]).to_local(), rows.sum(), rows.max(), rows.mean(0), torch.linalg.vector_norm(rows),
    ]  # fmt: skip


def _stage_and_schedule(kind):
    size, rank = dist.get_world_size(), dist.get_rank()
    parts = [nn.Sequential(nn.Linear(8, 8), nn.ReLU()) for _ in range(size)]
    stage = PipelineStage(parts[rank], rank, size, torch.device("cpu"))
    return parts[rank], kind(stage, n_microbatches=3, loss_fn=nn.functional.mse_loss)


def pipeline(kind):
    size, rank = dist.get_world_size(), dist.get_rank()
    part, schedule = _stage_and_schedule(kind)
    (inputs,) = inputs_of(1, differ=False)
    losses = []
    if rank == 0:
        schedule.step(inputs)
    elif rank == size - 1:
        schedule.step(target=inputs, losses=losses)
        assert len(losses) == 3
    else:
        schedule.step()
    return [*losses, *(parameter.grad for parameter in part.parameters())]


def gpipe():
    return pipeline(ScheduleGPipe)


def one_forward_one_backward():
    return pipeline(Schedule1F1B)


def hybrid_shards():
    """FSDP within pairs of ranks, copies between the pairs."""
    mesh = init_device_mesh("cpu", (2, dist.get_world_size() // 2), mesh_dim_names=("copies", "shards"))
    return trained(fsdp2(mesh=mesh))


def hybrid_fsdp1():
    mesh = init_device_mesh("cpu", (2, dist.get_world_size() // 2), mesh_dim_names=("copies", "shards"))
    return fsdp1(sharding_strategy=ShardingStrategy.HYBRID_SHARD, device_mesh=mesh)


def shards_of_tensor_parallel_layers():
    """FSDP of layers that tensor parallelism has divided: a mesh of two dimensions."""
    mesh = init_device_mesh("cpu", (2, dist.get_world_size() // 2), mesh_dim_names=("data", "model"))
    model = parallelize_module(layers(), mesh["model"], {"0": ColwiseParallel(), "2": RowwiseParallel()})
    return trained(fully_shard(model, mesh=mesh["data"]), differ=False)


def copies_of_tensor_parallel_layers():
    mesh = init_device_mesh("cpu", (2, dist.get_world_size() // 2), mesh_dim_names=("data", "model"))
    model = DistributedDataParallel(layers(), process_group=mesh["data"].get_group())
    return trained(model)


OF_TWO = [
    fsdp1_full_shards, fsdp1_shards_of_gradients, fsdp1_mixed_precision, fsdp1_state, fsdp2_full_shards, fsdp2_without_resharding,
    fsdp2_mixed_precision, fsdp2_clipping, fsdp2_accumulation, tensor_parallel, sequence_parallel, parallel_loss, distributed_tensors,
]  # fmt: skip
PIPELINES = [gpipe, one_forward_one_backward]
OF_FOUR = [hybrid_shards, hybrid_fsdp1, shards_of_tensor_parallel_layers, copies_of_tensor_parallel_layers]


def compare(name):
    return compared(globals()[name])[0]


def name_of(program):
    return program.__name__


@pytest.mark.parametrize("program", OF_TWO, ids=name_of)
def test_two_ranks_compute_what_they_compute_over_gloo(call_ranks, program):
    assert call_ranks(compare, 2, program.__name__) == [True] * 2


@pytest.mark.parametrize("program", PIPELINES, ids=name_of)
def test_pipelines_compute_what_they_compute_over_gloo(call_ranks, program):
    assert call_ranks(compare, 2, program.__name__) == [True] * 2


@pytest.mark.thorough
@pytest.mark.parametrize("program", OF_FOUR, ids=name_of)
def test_a_mesh_of_four_ranks_computes_what_it_computes_over_gloo(call_ranks, program):
    """Each dimension of the mesh has two ranks: no sum has more than two terms, so that the order makes no difference."""
    assert call_ranks(compare, 4, program.__name__) == [True] * 4
