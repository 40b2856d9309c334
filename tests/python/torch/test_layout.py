"""python/runjob/torch/layout.py: whatever way a gradient travels, all ranks get the same; two ranks."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import cases
import runjob.torch as hvd
from doubling import Doubling
from runjob.torch.bucket_plan import WHOLE_BYTES


def _embedding():
    torch.manual_seed(4)
    return nn.Embedding(6, 3, sparse=True)


def groups_of_parameters():
    """In another order than the model's, with a frozen one, one of nowhere, and ones in no group; with two dtypes in one."""
    first, second = nn.Linear(4, 3), nn.Linear(3, 2).double()
    named = [(f"{i}.{name}", p) for i, layer in enumerate((first, second)) for name, p in layer.named_parameters()]
    first.bias.requires_grad_(False)
    groups = [[second.weight, first.weight, first.bias], [torch.ones(1, requires_grad=True)]]
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([p for _, p in named], lr=1.0), named, groups=groups)
    for _ in range(2):
        optimizer.zero_grad()
        second((first(torch.full((1, 4), 1.0 + hvd.rank()))).double() * 0 + hvd.rank()).sum().backward()
        optimizer.synchronize()
    return second.weight.grad.unique().tolist(), second.bias.grad.tolist(), first.weight.grad.unique().tolist(), first.bias.grad


def one_rank_uses_it():
    """The other one takes part with zeros, whatever travels: in a bucket, closing, alone, sparse, compressed."""
    found = []
    for options in ({}, {"groups": 1}, {"compression": Doubling}, {"compression": hvd.Compression.fp16}):
        layers = [nn.Linear(2, 1, bias=False) for _ in range(2)]
        named = [(f"layer{i}", layer.weight) for i, layer in enumerate(layers)]
        for layer in layers:
            nn.init.zeros_(layer.weight)
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD([w for _, w in named], lr=1.0), named, **options)
        for _ in range(3):
            optimizer.zero_grad()
            layers[hvd.rank()](torch.tensor([4.0, 2.0])).sum().backward()
            optimizer.step()
        found.append([weight.tolist() for _, weight in named])
    return all(each == [[[-6.0, -3.0]], [[-6.0, -3.0]]] for each in found)


def sparse_gradients():
    """As they are, dense in between, and of one rank only; with an optimizer that takes nothing else."""
    found = []
    for options in ({}, {"sparse_as_dense": True}):
        alone, layer = _embedding(), _embedding()
        reference = torch.optim.SparseAdam(list(alone.parameters()), lr=0.1)
        optimizer = hvd.DistributedOptimizer(torch.optim.SparseAdam(list(layer.parameters()), lr=0.1), layer.named_parameters(), **options)
        for step in range(3):
            rows = [torch.tensor([0, step]), torch.tensor([step, 5, 5])]
            reference.zero_grad()
            (sum(alone(row).pow(2).sum() for row in rows) / 2).backward()
            reference.step()
            optimizer.zero_grad()
            layer(rows[hvd.rank()]).pow(2).sum().backward()
            optimizer.step()
        found.append((float((alone.weight - layer.weight).detach().abs().max()) < 1e-6, layer.weight.grad.is_sparse))
    return found


def a_sparse_gradient_that_comes_late():
    """It was taken for a dense one until then; then one rank lacks it, then all."""
    layer, other = _embedding(), torch.zeros(1, requires_grad=True)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([layer.weight, other], lr=1.0))
    seen = []
    for step in range(4):
        optimizer.zero_grad()
        loss = other.sum()
        if step == 1 or (step == 2 and hvd.rank() == 1):
            loss = loss + layer(torch.tensor([hvd.rank()])).sum() * 2
        loss.backward()
        optimizer.synchronize()
        seen.append(None if layer.weight.grad is None else layer.weight.grad.to_dense()[:3, 0].tolist())
    return seen


def a_gradient_that_cannot_be_reduced():
    """The pass fails on all ranks, and waits for the gradients that are in flight; so does the step."""
    weights = [torch.zeros(3, requires_grad=True), torch.zeros(2, dtype=torch.complex64, requires_grad=True)]
    weights.append(torch.zeros(2, requires_grad=True))
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(weights, lr=1.0), groups=[[weight] for weight in weights])
    found = []
    for what in (sum(weight.abs().sum() for weight in weights).backward, optimizer.step):
        with pytest.raises(ValueError, match="does not take torch.complex64"):
            what()
        layout = optimizer._gradients._layout
        found += [bucket.is_submitted for bucket in (*layout.buckets, layout.closing)]
    return found


def large_gradients():
    """Those that go alone, row-major or not, and in a group: used by both ranks, by one, by none."""
    found = []
    for groups in (None, 1):
        weights = [torch.zeros(WHOLE_BYTES // 4, 2)[:, 0], torch.zeros(2, WHOLE_BYTES // 8), torch.zeros(WHOLE_BYTES // 8, 2).t()]
        weights = [weight.requires_grad_() for weight in weights]
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD(weights, lr=1.0), groups=groups)
        for step in range(3):
            optimizer.zero_grad()
            used = weights if step == 0 else weights[1:] if step == 1 and hvd.rank() == 0 else weights[:0]
            sum((weight * (hvd.rank() + 1)).sum() for weight in [*used, torch.zeros(1, requires_grad=True)]).backward()
            optimizer.synchronize()
            found.append([None if weight.grad is None else weight.grad.unique().tolist() for weight in weights])
    return found == 2 * [[[1.5]] * 3, [None, [0.5], [0.5]], [None] * 3]


CASES = {
    large_gradients: True,
    a_gradient_that_cannot_be_reduced: [False] * 8,
    groups_of_parameters: ([0.5], [1.0, 1.0], [0.0], None),
    one_rank_uses_it: True,
    sparse_gradients: [(True, True), (True, True)],
    a_sparse_gradient_that_comes_late: [None, [1.0, 1.0, 0.0], [0.0, 1.0, 0.0], None],
}


def _all():
    hvd.init()
    return cases.run(CASES)


outcomes = cases.fixture(_all)


@pytest.mark.parametrize("case", CASES)
def test_layouts(outcomes, case):
    for outcome in outcomes:
        assert outcome[case.__name__] == CASES[case]
