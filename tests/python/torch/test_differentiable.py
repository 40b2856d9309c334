"""python/runjob/torch/differentiable.py: gradients through collectives."""

import pytest
import torch

import runjob.torch as hvd


def _gradient(operation, shape=(2, 3)):
    """The gradient that this rank's input gets when rank r weighs the output with r + 1."""
    x = torch.full(shape, 1.0 + hvd.rank(), dtype=torch.float64, requires_grad=True)
    y = operation(x)
    (y * (hvd.rank() + 1)).sum().backward()
    return x.grad


def _allreduce_gradients():
    hvd.init()
    factors = {"prescale_factor": 3.0, "postscale_factor": 0.5}
    return [
        _gradient(lambda x: hvd.allreduce(x, op=hvd.Sum)).unique().tolist(),
        _gradient(lambda x: hvd.allreduce(x)).unique().tolist(),
        _gradient(lambda x: hvd.allreduce(x, op=hvd.Sum, **factors)).unique().tolist(),
        _gradient(lambda x: hvd.allreduce(x, op=hvd.Sum, compression=hvd.Compression.fp16)).unique().tolist(),
    ]


@pytest.mark.parametrize("np", [1, 3])
def test_allreduce_reduces_the_gradients_in_the_same_way(call_ranks, np):
    weights = float(sum(range(1, np + 1)))
    assert call_ranks(_allreduce_gradients, np) == [[[weights], [weights / np], [weights * 1.5], [weights]]] * np


def _second_derivative():
    hvd.init()
    x = torch.tensor([1.0 + hvd.rank()], dtype=torch.float64, requires_grad=True)
    (first,) = torch.autograd.grad(hvd.allreduce(x**3, op=hvd.Sum).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    return first.item(), second.item()


def test_gradients_are_differentiable_again(call_ranks):
    # f = sum of x^3 over ranks, on both ranks: each gradient counts twice, once per rank.
    assert call_ranks(_second_derivative, 2) == [(2 * 3 * x**2, 2 * 6 * x) for x in (1.0, 2.0)]


def _allgather_gradients():
    hvd.init()
    rows = hvd.rank()  # rank 0 has none
    x = torch.ones(rows, 2, dtype=torch.float64, requires_grad=True)
    gathered = hvd.allgather(x)
    weights = torch.arange(gathered.shape[0], dtype=torch.float64).unsqueeze(1) + 10 * hvd.rank()
    (gathered * weights).sum().backward()
    return x.grad.tolist()


def test_allgather_gives_each_rank_its_rows_of_the_average(call_ranks):
    # Rows are weighed with their index, and 10 * rank on top: on average 10.
    assert call_ranks(_allgather_gradients, 3) == [[], [[10.0, 10.0]], [[11.0, 11.0], [12.0, 12.0]]]


def _broadcast_gradients():
    hvd.init()
    return _gradient(lambda x: hvd.broadcast(x, 1)).unique().tolist()


def test_broadcast_gives_the_average_to_the_root_and_zero_to_the_others(call_ranks):
    assert call_ranks(_broadcast_gradients, 3) == [[0.0], [2.0], [0.0]]


def _compressed():
    hvd.init()
    x = torch.tensor([1.0 + 2**-15])
    return hvd.allreduce(x, compression=hvd.Compression.fp16).item(), hvd.allreduce(x).item(), hvd.allreduce(
        torch.tensor([3]), compression=hvd.Compression.fp16
    ).dtype == torch.int64


def test_compression_sends_half_precision(call_ranks):
    assert call_ranks(_compressed, 2) == [(1.0, 1.0 + 2**-15, True)] * 2
