"""python/runjob/torch/buckets.py: gradients in common memory are what they would be by themselves; two ranks."""

from __future__ import annotations

import random
import warnings

import pytest
import torch
from torch import nn

import cases
import runjob.torch as hvd


LAYERS = 5
STEPS = 8
SEEDS = range(12)
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


def other_memory_for_a_gradient():
    """p.grad.data = ..., as clipping of values is often written, and as a module does that gets another format."""
    weight, layer = torch.zeros(3, requires_grad=True), nn.Conv2d(2, 2, 3)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([weight, *layer.parameters()], lr=0.0))
    found = []
    for step in range(4):
        optimizer.zero_grad(set_to_none=False)
        (sum(each.sum() for each in (weight, layer.weight, layer.bias)) * (step + hvd.rank())).backward()
        optimizer.synchronize()
        found.append([gradient.unique().tolist() for gradient in (weight.grad, layer.bias.grad, layer.weight.grad)])
        weight.grad.data = weight.grad.data.clamp(0, 10)
        layer.to(memory_format=torch.channels_last if step % 2 == 0 else torch.contiguous_format)
    return found


def parts_of_a_buffer():
    """Gradients in a buffer of the program's own stay there, complete or not."""
    found = []
    for passes in (1, 2):
        weights, buffer = [torch.zeros(3, requires_grad=True), torch.zeros((), requires_grad=True)], torch.zeros(5)
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD(weights, lr=0.0), backward_passes_per_step=passes)
        weights[0].grad, weights[1].grad = buffer[:3], buffer[4]
        for _ in range(3):
            buffer.zero_()
            for _ in range(passes):
                (sum(weight.sum() for weight in weights) * (hvd.rank() + 1)).backward()
            optimizer.step()
            found.append(buffer.tolist())
    return found


def detached_in_place():
    """As scripts clear gradients that were written for PyTorch before 1.7."""
    weight = torch.zeros(2, requires_grad=True)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=1.0))
    for _ in range(3):
        if weight.grad is not None:
            weight.grad.detach_()
            weight.grad.zero_()
        (weight * hvd.rank()).sum().backward()
        optimizer.step()
    return weight.tolist()


def gradients_of_which_some_begin_late():
    """Some lie in the bucket when the first one comes that does not, while a gradient of the last step is kept."""
    found = []
    for keeps in (False, True):
        weights = [torch.zeros(2, requires_grad=True) for _ in range(3)]
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD(weights, lr=0.0), groups=1)
        kept = []
        for step in range(4):
            if keeps and step == 3:
                kept = [weights[1].grad]
            weights[1].grad = None
            optimizer.zero_grad(set_to_none=False)
            used = weights if step > 1 else weights[:1]
            for weight in used:  # a backward pass each: so the first is in place before the others come
                (weight * (step + hvd.rank())).sum().backward()
            optimizer.step()
            found.append([None if weight.grad is None else weight.grad[0].item() for weight in weights])
        found.append([gradient.tolist() for gradient in kept])
    return found


def kept_while_no_rank_has_another():
    weights = [torch.zeros(2, requires_grad=True) for _ in range(2)]
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(weights, lr=1.0), groups=1)
    for step in range(2):
        optimizer.zero_grad()
        if step == 0:
            sum(weight.sum() * (hvd.rank() + 1) for weight in weights).backward()
        optimizer.step()
        kept = kept if step else [weight.grad for weight in weights]
    return [gradient.tolist() for gradient in kept]


def memory_changes_only_when_it_must():
    """Where gradients are cleared in either way, and some are empty; not even new tensors are made for those that stay."""
    found = []
    for set_to_none in (True, False):
        weights = [torch.zeros(3, requires_grad=True), torch.zeros(0, requires_grad=True), torch.zeros(2, requires_grad=True)]
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD(weights, lr=1.0), groups=1)
        memory, tensors = set(), []
        for _ in range(4):
            optimizer.zero_grad(set_to_none=set_to_none)
            sum(weight.sum() for weight in weights).backward()
            optimizer.step()
            memory.add(tuple(weight.grad.data_ptr() for weight in weights))
            tensors += [] if set_to_none else [weights[0].grad]
        found.append(len(memory) == 1 and all(each is tensors[0] for each in tensors))
    return found


def another_layout():
    """Gradients that stay move to the new buckets."""
    weights = [torch.zeros(2, requires_grad=True) for _ in range(3)]
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(weights, lr=0.0), groups=1)
    for step in range(4):
        weights[2].requires_grad_(step < 2)
        optimizer.zero_grad(set_to_none=False)
        sum(weight.sum() * (step + hvd.rank()) for weight in weights[: 3 if step < 2 else 2]).backward()
        optimizer.step()
    memory = [weight.grad.untyped_storage().data_ptr() for weight in weights]
    return [weight.grad.tolist() for weight in weights], memory[0] == memory[1] != memory[2]


def without_counts_of_references():
    count = torch._C._storage_Use_Count
    del torch._C._storage_Use_Count
    try:
        return a_gradient_that_somebody_keeps(), gradients_of_which_some_begin_late(), memory_changes_only_when_it_must()[1]
    finally:
        torch._C._storage_Use_Count = count


def graphs_of_gradients():
    """create_graph=True: the result is no part of the graph, so that a derivative through it is an error."""
    weight = torch.tensor([2.0], requires_grad=True)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=1.0))
    seen = []
    for _ in range(2):
        weight.grad = None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch's, about the cycle
            (weight.pow(2) * (hvd.rank() + 1)).sum().backward(create_graph=True)
        with pytest.raises(RuntimeError, match="does not require grad"):
            torch.autograd.grad(weight.grad.pow(2).sum(), [weight])
        optimizer.step()
        weight.data.fill_(2.0)
        seen.append((weight.grad.item(), weight.grad.requires_grad))
    weight.grad = None
    return seen


LATE = [[0.5, None, None], [1.5, None, None], [2.5] * 3, [3.5] * 3]
LATE = [*LATE, [], *LATE, [[2.5] * 2]]

CASES = {
    other_memory_for_a_gradient: [[[step + 0.5]] * 3 for step in range(4)],
    parts_of_a_buffer: [[1.5, 1.5, 1.5, 0.0, 1.5]] * 3 + [[3.0, 3.0, 3.0, 0.0, 3.0]] * 3,
    detached_in_place: [-1.5, -1.5],
    gradients_of_which_some_begin_late: LATE,
    kept_while_no_rank_has_another: [[1.5, 1.5], [1.5, 1.5]],
    memory_changes_only_when_it_must: [True, True],
    another_layout: ([[3.5, 3.5], [3.5, 3.5], [0.0, 0.0]], True),
    without_counts_of_references: ([0.5, 1.5, 2.5, 3.5, 4.5], LATE, True),
    words_survive_every_reduction: ALL_OPS,
    mixed_dtypes_and_formats: [True] * 8,
    other_strides_on_one_rank: [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]],
    accumulated: [-18.0, -18.0, -36.0],
    cleared_means_none: [True, True],
    a_gradient_that_somebody_keeps: [0.5, 1.5, 2.5, 3.5, 4.5],
    memory_is_symmetric_and_shared: (True, [0, 0, 0], 1),
    graphs_of_gradients: [(6.0, False), (6.0, False)],
}


class Drawn:
    """A training that the ranks do, and one process does, which computes the gradients of each rank. All ranks draw the same: how gradients
    are cleared, which of them are kept, which layers a rank uses, which are frozen, and whether gradients are clipped.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.passes = self.random.choice([1, 1, 2, 3])
        self.groups = self.random.choice([None, None, 1, 2])
        self.make_optimizer = self.random.choice([_sgd, _adamw])

    def model(self) -> nn.ModuleList:
        torch.manual_seed(3)
        return nn.ModuleList([*(nn.Linear(4, 4) for _ in range(LAYERS)), nn.Embedding(6, 4)])

    def often(self, share: float) -> bool:
        return self.random.random() < share


def _sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9, weight_decay=0.01)


def _adamw(parameters):
    return torch.optim.AdamW(parameters, lr=0.01)


def _backward(model: nn.ModuleList, x: torch.Tensor, used: list[int]) -> None:
    for index in used:
        x = torch.tanh(model[index](x))
    if (loss := x.pow(2).sum()).requires_grad:
        loss.backward()


def _clear(drawn: Drawn, models: list[nn.ModuleList]) -> None:
    way = drawn.random.choice(["none", "zero", "each", "each", "not at all"])
    ways = [drawn.random.choice(["none", "zero", "not at all"]) if way == "each" else way for _ in models[0].parameters()]
    for model in models:
        for way, parameter in zip(ways, model.parameters()):
            if way == "none":
                parameter.grad = None
            elif way == "zero" and parameter.grad is not None:
                parameter.grad.zero_()


def _average(models: list[nn.ModuleList]) -> None:
    """What the ranks are to come to."""
    for parameters in zip(*(model.parameters() for model in models)):
        gradients = [parameter.grad for parameter in parameters]
        if not parameters[0].requires_grad or all(gradient is None for gradient in gradients):
            continue
        average = sum(torch.zeros(parameters[0].shape) if gradient is None else gradient for gradient in gradients) / hvd.size()
        for parameter in parameters:
            parameter.grad = average.clone()


def _differs(model: nn.ModuleList, expected: nn.ModuleList) -> bool:
    for ours, theirs in zip(model.parameters(), expected.parameters()):
        pairs = [(ours.detach(), theirs.detach()), (ours.grad, theirs.grad)]
        if any((a is None) != (b is None) or (a is not None and not torch.allclose(a, b, atol=1e-4)) for a, b in pairs):
            return True
    return False


def _wrong_steps(seed: int) -> list[str]:
    drawn = Drawn(seed)
    model, alone = drawn.model(), [drawn.model() for _ in range(hvd.size())]
    optimizer = hvd.DistributedOptimizer(
        drawn.make_optimizer(model.parameters()), model.named_parameters(), backward_passes_per_step=drawn.passes, groups=drawn.groups
    )
    optimizers = [drawn.make_optimizer(each.parameters()) for each in alone]
    kept: list[tuple[torch.Tensor, torch.Tensor]] = []
    wrong = []
    for step in range(STEPS):
        _clear(drawn, [model, *alone])
        if drawn.often(0.3):
            index, is_trained = drawn.random.randrange(LAYERS + 1), drawn.often(0.5)
            for each in (model, *alone):
                each[index].requires_grad_(is_trained)
        for _ in range(drawn.random.choice([drawn.passes, max(1, drawn.passes - 1)])):
            used = [sorted(drawn.random.sample(range(LAYERS), drawn.random.randrange(1, LAYERS))) for _ in alone]
            used = [used[0]] * len(used) if drawn.often(0.5) else used
            x = [torch.randn(3, 4, generator=torch.Generator().manual_seed(drawn.random.randrange(1 << 30))) for _ in alone]
            for each, *of_rank in zip(alone, x, used):
                _backward(each, *of_rank)
            _backward(model, x[hvd.rank()], used[hvd.rank()])
        _average(alone)
        optimizer.synchronize()
        if drawn.often(0.4):
            for each in (model, *alone):
                nn.utils.clip_grad_norm_(each.parameters(), 0.5)
        with optimizer.skip_synchronize():
            optimizer.step()
        for each in optimizers:
            each.step()
        if _differs(model, alone[hvd.rank()]):
            wrong.append(f"step {step}")
        if any(not torch.equal(gradient, value) for gradient, value in kept):
            wrong.append(f"a kept gradient in step {step}")
        kept = _keep_some(drawn, model, alone)
    return wrong


def _keep_some(drawn: Drawn, model: nn.ModuleList, alone: list[nn.ModuleList]) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Gradients that are then cleared, and what they were."""
    kept = []
    for parameter, *others in zip(*(each.parameters() for each in (model, *alone))):
        if drawn.often(0.1) and parameter.grad is not None:
            kept.append((parameter.grad, parameter.grad.clone()))
            for each in (parameter, *others):
                each.grad = None
    return kept


def _all():
    hvd.init()
    return {**cases.run(CASES), **{seed: _wrong_steps(seed) for seed in SEEDS}}


outcomes = cases.fixture(_all)


@pytest.mark.parametrize("case", CASES)
def test_buckets(outcomes, case):
    for outcome in outcomes:
        assert outcome[case.__name__] == CASES[case]


@pytest.mark.parametrize("seed", SEEDS)
def test_random_steps_are_those_of_one_process(outcomes, seed):
    assert [outcome[seed] for outcome in outcomes] == [[], []]
