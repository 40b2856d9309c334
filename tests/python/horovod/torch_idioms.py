"""What Horovod's PyTorch scripts do, in their own spelling, as a program of two ranks. Each rank prints "RANK NAME ok" for each idiom,
or the traceback. test_torch_idioms.py starts it with each launcher."""

import sys
import traceback
import warnings

import torch
import torch.nn.functional as F

import horovod.torch as hvd
from horovod.common.exceptions import HorovodInternalError
from horovod.common.util import check_extension, extension_available
from horovod.torch.compression import Compression
from horovod.torch.elastic.sampler import ElasticSampler
from horovod.torch.functions import broadcast_object
from horovod.torch.mpi_ops import HorovodAllreduce, HorovodGroupedAllreduce, HorovodReducescatter, _allreduce_async, _handle_map
from horovod.torch.optimizer import _DistributedOptimizer
from horovod.torch.sync_batch_norm import SyncBatchNorm


def _model():
    torch.manual_seed(42)
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))


def _batch(step):
    generator = torch.Generator().manual_seed(10 * step + hvd.rank())
    return torch.randn(6, 4, generator=generator), torch.randint(2, (6,), generator=generator)


def _are_equal(model):
    flat = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
    return torch.equal(hvd.allreduce(flat, op=hvd.Max), flat)


def which_backends():
    assert hvd.mpi_threads_supported() == (sys.argv[1] == "mpirun")
    assert hvd.gloo_enabled() and hvd.gloo_built() and not hvd.nccl_built()
    assert extension_available("torch")
    check_extension("horovod.torch", "HOROVOD_WITH_PYTORCH", __file__, "mpi_lib_v2")


def places():
    assert hvd.is_initialized() and hvd.size() == hvd.local_size() == 2 and hvd.rank() == hvd.local_rank()
    assert (hvd.cross_rank(), hvd.cross_size(), hvd.is_homogeneous()) == (0, 1, True)


def training():
    """As pytorch_mnist.py: scaled rate, broadcast of both, compression and a factor."""
    model = _model()
    with torch.no_grad():
        model[0].weight += hvd.rank()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01 * hvd.size(), momentum=0.5)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    optimizer = hvd.DistributedOptimizer(
        optimizer, named_parameters=model.named_parameters(), compression=hvd.Compression.fp16, op=hvd.Average, gradient_predivide_factor=2.0
    )
    for step in range(3):
        data, target = _batch(step)
        optimizer.zero_grad()
        F.cross_entropy(model(data), target).backward()
        optimizer.step()
    assert _are_equal(model)


def clipping_between_synchronize_and_step():
    model = _model()
    optimizer = hvd.DistributedOptimizer(torch.optim.Adam(model.parameters()), model.named_parameters(), backward_passes_per_step=2)
    for step in range(2):
        for part in range(2):
            data, target = _batch(2 * step + part)
            F.cross_entropy(model(data), target).backward()
        optimizer.synchronize()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        with optimizer.skip_synchronize():
            optimizer.step()
        optimizer.zero_grad()
    assert _are_equal(model)


def scaled_gradients():
    model, scaler = _model(), torch.amp.GradScaler("cpu")
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters())
    data, target = _batch(0)
    scaler.scale(F.cross_entropy(model(data), target)).backward()
    optimizer.synchronize()
    scaler.unscale_(optimizer)
    with optimizer.skip_synchronize():
        scaler.step(optimizer)
    scaler.update()
    assert _are_equal(model)


def a_step_after_synchronize_is_warned_of():
    model = _model()
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1))
    F.cross_entropy(model(_batch(0)[0]), _batch(0)[1]).backward()
    optimizer.synchronize()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        optimizer.step()
    assert "optimizer.step() called without optimizer.skip_synchronize() context" in str(caught[0].message)


def attributes_of_the_optimizer():
    model = _model()
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters(), op=hvd.Sum)
    assert sorted(optimizer._parameter_names.values()) == sorted(name for name, _ in model.named_parameters())
    assert optimizer._requires_update == set(model.parameters()) and not optimizer._handles
    assert optimizer.op == hvd.Sum and optimizer.process_set is hvd.global_process_set and not optimizer.sparse_as_dense
    assert optimizer._compression is Compression.none and optimizer.gradient_predivide_factor == 1.0
    assert isinstance(optimizer, _DistributedOptimizer) and isinstance(optimizer, torch.optim.SGD)


def metrics_and_objects():
    def metric_average(value, name):
        return hvd.allreduce(torch.tensor(value), name=name).item()

    assert metric_average(float(hvd.rank()), "avg_loss") == 0.5
    assert hvd.allgather_object({"rank": hvd.rank()}) == [{"rank": 0}, {"rank": 1}]
    assert broadcast_object({"epoch": 3} if hvd.rank() == 0 else None, root_rank=0, name="resume") == {"epoch": 3}


def handles():
    handle = hvd.allreduce_async_(torch.ones(3), average=False, name="in flight")
    assert handle in _handle_map and len(_handle_map[handle]) == 2
    while not hvd.poll(handle):
        pass
    assert hvd.synchronize(handle).tolist() == [2.0] * 3 and handle not in _handle_map
    output = torch.empty(2)
    handle = _allreduce_async(torch.ones(2), output, "private", hvd.Sum, 1.0, 1.0, hvd.global_process_set)
    assert hvd.synchronize(handle) is output and output.tolist() == [2.0, 2.0]


def autograd_functions():
    x = torch.ones(2, requires_grad=True)
    HorovodAllreduce.apply(x, None, "function", hvd.Sum, 1.0, 1.0, hvd.global_process_set).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    first, second = HorovodGroupedAllreduce.apply(None, "functions", hvd.Sum, 0.5, 1.0, hvd.global_process_set, x, 2 * x)
    assert (first.tolist(), second.tolist()) == ([1.0, 1.0], [2.0, 2.0])
    assert HorovodReducescatter.apply(x, "scattered", hvd.Average, hvd.global_process_set, 1.0, 1.0).tolist() == [1.0]


def every_collective():
    ones, rank = torch.ones(4), hvd.rank()
    assert hvd.grouped_allreduce([ones, 2 * ones], op=hvd.Sum)[1].tolist() == [4.0] * 4
    assert hvd.allgather(torch.full((1 + rank,), rank)).tolist() == [0, 1, 1]
    assert hvd.broadcast(ones * rank, root_rank=1).tolist() == [1.0] * 4
    received, splits = hvd.alltoall(torch.arange(3) + 10 * rank, splits=torch.tensor([1, 2]))
    assert (received.tolist(), splits.tolist()) == (([0, 10], [1, 1]) if rank == 0 else ([1, 2, 11, 12], [2, 2]))
    assert hvd.reducescatter(ones, op=hvd.Sum).tolist() == [2.0, 2.0]
    hvd.barrier()


def factors_as_horovod_computes_them():
    """float32 with float32 factors; the sum is exact, as only one rank has something."""
    mine = torch.linspace(0.1, 7.3, 1000) * (hvd.rank() == 0)
    reduced = hvd.allreduce(mine, op=hvd.Average, prescale_factor=0.3, postscale_factor=0.7)
    theirs = torch.linspace(0.1, 7.3, 1000) * torch.tensor(0.3, dtype=torch.float32) * torch.tensor(0.7 / 2, dtype=torch.float32)
    assert torch.equal(reduced, theirs)
    wide = hvd.allreduce(mine.double(), op=hvd.Sum, prescale_factor=0.3, postscale_factor=0.7)
    assert torch.equal(wide, torch.linspace(0.1, 7.3, 1000).double() * 0.3 * 0.7)
    whole = hvd.allreduce(torch.arange(100) * (hvd.rank() == 0), op=hvd.Sum, postscale_factor=0.3)
    assert whole.tolist() == [int(value * 0.3) for value in range(100)]


def ranks_that_disagree_get_an_error():
    try:
        hvd.allreduce(torch.ones(2 + hvd.rank()), name="different")
    except HorovodInternalError as error:
        assert "different" in str(error)
    else:
        raise AssertionError("no error")


def process_sets():
    """Also an optimizer of a set, outside of which a rank keeps its own gradients."""
    alone = hvd.add_process_set(hvd.ProcessSet([1]))
    assert alone.process_set_id == 1 and alone.included() == (hvd.rank() == 1)
    weight = torch.zeros(1, requires_grad=True)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=1.0), process_set=alone)
    (weight * (1 + hvd.rank())).sum().backward()
    optimizer.step()
    assert weight.item() == -1.0 - hvd.rank()
    other = hvd.ProcessSet([1])
    other.process_set_id = alone.process_set_id
    if other.included():
        assert hvd.allreduce(torch.ones(1), op=hvd.Sum, process_set=other).item() == 1.0
    assert hvd.remove_process_set(alone)


def unequal_data():
    """A rank without data joins before its first step, and trains with the others afterwards."""
    model = _model()
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters())
    for epoch in range(2):
        for step in range(2 * hvd.rank()):
            data, target = _batch(step)
            optimizer.zero_grad()
            F.cross_entropy(model(data), target).backward()
            optimizer.step()
        assert hvd.join() == 1
        hvd.broadcast_parameters(model.state_dict(), root_rank=1)
        data, target = _batch(epoch)
        optimizer.zero_grad()
        F.cross_entropy(model(data), target).backward()
        optimizer.step()
    assert _are_equal(model)


def normalization_over_all_batches():
    layer, alone = SyncBatchNorm(3), torch.nn.BatchNorm1d(3)
    batches = [torch.randn(5, 3, generator=torch.Generator().manual_seed(rank)) for rank in range(2)]
    output = layer(batches[hvd.rank()])
    assert torch.allclose(output, alone(torch.cat(batches)).split(5)[hvd.rank()], atol=1e-5)


def samplers():
    data = torch.utils.data.TensorDataset(torch.arange(10))
    sampler = torch.utils.data.distributed.DistributedSampler(data, num_replicas=hvd.size(), rank=hvd.rank())
    elastic = ElasticSampler(data, shuffle=False)
    elastic.set_epoch(0)
    assert len(sampler) == 5 and sorted(hvd.allgather(torch.tensor(list(elastic))).tolist()) == list(range(10))


def starting_again():
    hvd.shutdown()
    assert not hvd.is_initialized()
    hvd.init()
    assert hvd.allreduce(torch.ones(1), op=hvd.Sum).item() == 2.0


IDIOMS = (
    which_backends, places, training, clipping_between_synchronize_and_step, scaled_gradients, a_step_after_synchronize_is_warned_of,
    attributes_of_the_optimizer, metrics_and_objects, handles, autograd_functions, every_collective, factors_as_horovod_computes_them,
    ranks_that_disagree_get_an_error, process_sets, unequal_data, normalization_over_all_batches, samplers, starting_again,
)  # fmt: skip


def main():
    hvd.init(process_sets="dynamic")
    for idiom in IDIOMS:
        try:
            idiom()
            outcome = "ok"
        except Exception:
            outcome = traceback.format_exc()
        sys.stdout.write(f"{hvd.rank()} {idiom.__name__} {outcome}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
