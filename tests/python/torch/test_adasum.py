"""op=Adasum of PyTorch's tensors, beside a tree in float64. python/runjob/torch/adasum.py, which is for GPUs, runs over the collectives
for the CPU's tensors here, on the same inputs."""

import numpy
import pytest
import torch
from adasum_tree import KINDS, error, inputs, tree

import runjob.torch as hvd
from runjob.calls import ALLREDUCE, Calls, Reduction
from runjob.grouped import ALLREDUCE as GROUPED_ALLREDUCE
from runjob.handles import run
from runjob.torch.adasum import AdasumCall
from runjob.torch.tensors import Tensors

DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]


def _by_gpus_way(tensor, prescale=1.0, postscale=1.0, native=0):
    reduction = Reduction(hvd.Adasum, prescale, postscale, hvd.global_process_set, native)
    return run(AdasumCall(Calls(Tensors()), ALLREDUCE, None, [tensor], reduction, lambda made: made[0]))


def _tensors(kind, size, dtype):
    limits = torch.finfo(dtype)
    return [torch.from_numpy(array).to(dtype) for array in inputs(kind, size, limits.tiny, limits.max)]


def _expected(tensors):
    return tree([tensor.double().numpy() for tensor in tensors])


def _errors(way):
    hvd.init()
    found = []
    for dtype in DTYPES:
        for kind in KINDS:
            tensors = _tensors(kind, hvd.size(), dtype)
            own = tensors[hvd.rank()]
            result = hvd.allreduce(own, op=hvd.Adasum) if way == "library" else _by_gpus_way(own)
            assert result.dtype == dtype and result.shape == own.shape
            found.append((error(result.double().numpy(), _expected(tensors)) / torch.finfo(dtype).eps, str(dtype), kind))
    return max(found)


@pytest.mark.parametrize("way", ["library", "of GPUs"])
@pytest.mark.parametrize("np", [2, 3, 4])
def test_every_dtype_and_kind(call_ranks, np, way):
    for largest in call_ranks(_errors, np, way):
        assert largest[0] < 100, largest


def _gpus_way():
    """A group of several dtypes and shapes, scaled, compressed, and what is not finite."""
    hvd.init()
    rank, size = hvd.rank(), hvd.size()
    of_ranks = [torch.randn(40, generator=torch.Generator().manual_seed(each)) for each in range(size)]
    given = of_ranks[rank]
    group = [given.view(8, 5), given[:1].double(), given[:0], given[3:10].half(), given.view(5, 8).t()]
    reduction = Reduction(hvd.Adasum, 1.0, 1.0, hvd.global_process_set)
    call = AdasumCall(Calls(Tensors()), GROUPED_ALLREDUCE, "g", group, reduction, lambda made: made)
    alike = []
    for result, own in zip(run(call), group):
        alone = hvd.allreduce(own, op=hvd.Adasum)
        alike.append(result.dtype == own.dtype and result.shape == own.shape and torch.allclose(result, alone, rtol=1e-3))
    exact = torch.from_numpy(_expected(of_ranks)).float()
    scaled = _by_gpus_way(given, 3.0, -7.0)
    compressed = _by_gpus_way(given * 1e4, 0.01, 1e4, native=1)
    bad = _by_gpus_way(torch.where(torch.arange(40) == rank * 30, torch.nan, given))
    try:
        _by_gpus_way(given.int())
    except RuntimeError as refused:
        text = str(refused)
    near = torch.allclose(scaled, exact * -21, rtol=1e-5), error(compressed.numpy(), exact.numpy() * 1e6) < 2e-3
    return alike, near, bool(bad.isnan().all()), text


def test_the_way_of_gpus(call_ranks):
    for alike, near, is_nan, text in call_ranks(_gpus_way, 3):
        assert alike == [True] * 5
        assert near == (True, True)
        assert is_nan
        assert text == "allreduce: op=Adasum takes floating-point tensors, not int32; convert the tensor to float32"


def _more():
    """Process sets, ranks that have joined, backward, sparse tensors, and a rank whose tensor differs."""
    hvd.init(process_sets="dynamic")
    rank = hvd.rank()
    pair = hvd.add_process_set([0, 2])
    of_ranks = [torch.randn(20, generator=torch.Generator().manual_seed(each)).double() for each in range(3)]
    own = of_ranks[rank].requires_grad_()
    in_set = hvd.allreduce(own, op=hvd.Adasum, process_set=pair).detach() if rank != 1 else None
    hvd.allreduce(own, op=hvd.Adasum).sum().backward()
    backward = own.grad.tolist()
    texts = []
    for wrong in (
        lambda: hvd.sparse_allreduce_async(torch.eye(2).to_sparse(), "s", hvd.Adasum),
        lambda: hvd.allreduce(torch.eye(2).to_sparse(), op=hvd.Adasum),
        lambda: hvd.allreduce(torch.ones(2 + rank), op=hvd.Adasum, name="differs"),
    ):
        try:
            wrong()
        except RuntimeError as refused:
            texts.append(str(refused)[:50])
    joined = None
    if rank != 1:
        joined = hvd.allreduce(own.detach(), op=hvd.Adasum, name="joined").numpy()
    hvd.join()
    values = [tensor.detach().numpy() for tensor in of_ranks]
    is_right = (
        rank == 1
        or error(in_set.numpy(), tree([values[0], values[2]])) < 1e-14
        and error(joined, tree([values[0], numpy.zeros(20), values[2]])) < 1e-14
    )
    return is_right, backward, texts


def test_sets_joins_and_refusals(call_ranks):
    for is_right, backward, texts in call_ranks(_more, 3):
        assert is_right
        assert backward == pytest.approx([1.0] * 20)
        assert [text[:20] for text in texts] == ["sparse_allreduce_asy", "allreduce of a spars", "allreduce 'allreduce"]
