"""python/runjob/torch/buckets.py: gradients in common memory are what they would be by themselves; two ranks."""

from __future__ import annotations

import warnings

import pytest
import torch

import cases
import runjob.torch as hvd


ALL_OPS = [(6.0, 5.0, None), (3.0, 2.5, None), (3.0, 0.0, None), (3.0, 5.0, None), (9.0, 0.0, None)]


def words_survive_every_reduction():
    found = []
    for op in (hvd.Sum, hvd.Average, hvd.Min, hvd.Max, hvd.Product):
        used, one, none = (torch.zeros(1, requires_grad=True) for _ in range(3))
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD([used, one, none], lr=1.0), op=op)
        for _ in range(2):
            optimizer.zero_grad()
            (used * 3 + (one * 5 if hvd.rank() == 1 else 0)).backward()
            optimizer.synchronize()
        found.append((used.grad.item(), one.grad.item(), none.grad))
    return found


def mixed_dtypes_and_formats():
    torch.manual_seed(2)
    weights = [
        torch.randn(3, dtype=torch.float64), torch.randn(2, 3), torch.randn(4, dtype=torch.bfloat16), torch.randn(5).half(),
        torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last), torch.randn(6, 4).t(), torch.randn(()), torch.randn(0),
    ]  # fmt: skip
    weights = [weight.requires_grad_() for weight in weights]
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(weights, lr=1.0))
    for _ in range(2):
        optimizer.zero_grad()
        sum((weight.float() * (2 * hvd.rank() + 1)).sum() for weight in weights).backward()
        optimizer.synchronize()
    return [
        bool((weight.grad == 2).all()) and weight.grad.stride() == weight.stride() and weight.grad.dtype == weight.dtype
        for weight in weights
    ]  # fmt: skip


def other_strides_on_one_rank():
    weight = torch.arange(6.0).view(2, 3)
    weight = (weight if hvd.rank() else weight.t().contiguous().t()).requires_grad_()
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=1.0))
    for _ in range(2):
        optimizer.zero_grad()
        (weight * torch.arange(6.0).view(2, 3)).sum().backward()
        optimizer.synchronize()
    return weight.grad.tolist()


def accumulated():
    """Gradients of several passes, kept between steps as zeros, or never cleared."""
    found = []
    for clear in (lambda o: o.zero_grad(), lambda o: o.zero_grad(set_to_none=False), lambda o: None):
        weight = torch.zeros(3, requires_grad=True)
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=1.0), backward_passes_per_step=2)
        for _ in range(3):
            clear(optimizer)
            for factor in (1, 3):
                (weight * factor * (hvd.rank() + 1)).sum().backward()
            optimizer.step()
        found.append(weight[0].item())
    return found


def cleared_means_none():
    weight = torch.zeros(3, requires_grad=True)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=1.0))
    seen = []
    for _ in range(2):
        seen.append(weight.grad is None)
        weight.sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    return seen


def a_gradient_that_somebody_keeps():
    """As in PyTorch it stays what it was, also when only a view of it is kept."""
    weight = torch.zeros(4, requires_grad=True)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=1.0))
    kept = []
    for step in range(5):
        optimizer.zero_grad()
        (weight * (step + hvd.rank())).sum().backward()
        optimizer.step()
        kept.append(weight.grad if step % 2 else weight.grad[1:])
    return [each[0].item() for each in kept]


def memory_is_symmetric_and_shared():
    weights = [torch.zeros(10, requires_grad=True) for _ in range(3)]
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(weights, lr=1.0), groups=1)
    addresses = []
    for _ in range(3):
        optimizer.zero_grad()
        sum(weight.sum() for weight in weights).backward()
        optimizer.step()
        addresses.append([weight.grad.data_ptr() % 64 for weight in weights] + [weight.grad.data_ptr() for weight in weights])
    return addresses[1] == addresses[2], addresses[0][:3], len({weight.grad.untyped_storage().data_ptr() for weight in weights})


def graphs_of_gradients():
    """create_graph=True: the gradient has a graph of its own, and is overwritten with the result."""
    weight = torch.tensor([2.0], requires_grad=True)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=1.0))
    seen = []
    for _ in range(2):
        weight.grad = None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch's, about the cycle
            (weight.pow(2) * (hvd.rank() + 1)).sum().backward(create_graph=True)
        optimizer.synchronize()
        seen.append((weight.grad.item(), weight.grad.requires_grad))
    weight.grad = None
    return seen


CASES = {
    words_survive_every_reduction: ALL_OPS,
    mixed_dtypes_and_formats: [True] * 8,
    other_strides_on_one_rank: [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]],
    accumulated: [-18.0, -18.0, -36.0],
    cleared_means_none: [True, True],
    a_gradient_that_somebody_keeps: [0.5, 1.5, 2.5, 3.5, 4.5],
    memory_is_symmetric_and_shared: (True, [0, 0, 0], 1),
    graphs_of_gradients: [(6.0, True), (6.0, True)],
}


def _all():
    hvd.init()
    return cases.run(CASES)


outcomes = cases.fixture(_all)


@pytest.mark.parametrize("case", CASES)
def test_buckets(outcomes, case):
    for outcome in outcomes:
        assert outcome[case.__name__] == CASES[case]
