"""python/runjob/torch/passes.py and the rounds of gradients.py: when backward() returns, gradients are those of all ranks; two ranks."""

from __future__ import annotations

import threading

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import cases
import runjob.torch as hvd
from doubling import Doubling


def _weights(count: int, size: int = 3) -> list[torch.Tensor]:
    return [torch.zeros(size, requires_grad=True) for _ in range(count)]


def _optimizer(weights, **options):
    return hvd.DistributedOptimizer(torch.optim.SGD(weights, lr=1.0), **options)


def _firsts(weights) -> list:
    return [None if weight.grad is None else weight.grad.to_dense().flatten()[0].item() for weight in weights]


def _mine(weight: torch.Tensor, factor: float = 1.0) -> torch.Tensor:
    """A loss whose gradient is `factor` on rank 0, twice that on rank 1."""
    return (weight * factor * (hvd.rank() + 1)).sum()


def reduced_when_backward_returns():
    """Whatever way a gradient travels."""
    found = []
    for options in ({}, {"groups": 1}, {"compression": Doubling}, {"compression": hvd.Compression.fp16}):
        weights = _weights(2)
        optimizer = _optimizer(weights, **options)
        for step in range(3):
            optimizer.zero_grad()
            sum(map(_mine, weights)).backward()
            found.append(_firsts(weights))
            optimizer.step()
            found.append(_firsts(weights))
    return all(each == [1.5, 1.5] for each in found)


def sparse_ones_too():
    found = []
    for options in ({}, {"sparse_as_dense": True}):
        layer = nn.Embedding(4, 2, sparse=True)
        optimizer = _optimizer([layer.weight], **options)
        for step in range(2):
            optimizer.zero_grad()
            layer(torch.tensor([hvd.rank()])).sum().backward()
            found.append(layer.weight.grad.to_dense()[:3, 0].tolist())
            optimizer.step()
    return found


def the_last_of_several_passes_waits():
    weights = _weights(2)
    optimizer = _optimizer(weights, backward_passes_per_step=2)
    found = []
    for step in range(2):
        optimizer.zero_grad()
        for _ in range(2):
            sum(map(_mine, weights)).backward()
            found.append(_firsts(weights)[0] if found or hvd.rank() == 0 else 1.0)
        optimizer.step()
    local = 1.0 + hvd.rank()
    return found == [1.0, 3.0, local, 3.0]


def passes_that_reach_different_parameters():
    """Each has its own reduced, and nothing is reduced twice: with a sum it would count twice."""
    found = []
    for op in (hvd.Average, hvd.Sum):
        weights = _weights(3)
        optimizer = _optimizer(weights, op=op)
        for clear in (True, False):
            for _ in range(3):
                optimizer.zero_grad(set_to_none=clear)
                _mine(weights[0]).backward()
                first = _firsts(weights)
                _mine(weights[1], 10.0).backward()
                found.append((first[0], *_firsts(weights)[:2]))
                optimizer.step()
    return found == [(1.5, 1.5, 15.0)] * 6 + [(3.0, 3.0, 30.0)] * 6


def cleared_between_passes():
    """By None, when it has come in one pass of two: it begins anew."""
    weights = _weights(2)
    optimizer = _optimizer(weights, backward_passes_per_step=2)
    found = []
    for _ in range(2):
        optimizer.zero_grad()
        for number in range(3):
            if number == 1:
                for weight in weights:
                    weight.grad = None
            sum(map(_mine, weights)).backward()
        found.append(_firsts(weights))
        optimizer.step()
    return found


def in_several_passes_each():
    """Two passes for a gradient, and between them those of another one."""
    weights = _weights(2)
    optimizer = _optimizer(weights, backward_passes_per_step=2, op=hvd.Sum)
    found = []
    for _ in range(3):
        optimizer.zero_grad()
        for _ in range(2):
            _mine(weights[0]).backward()
            _mine(weights[1], 10.0).backward()
        found.append(_firsts(weights))
        optimizer.step()
    return found


def too_few_passes_on_one_rank():
    """A gradient that one rank has in one pass of two, the other one in none."""
    weights = _weights(2)
    optimizer = _optimizer(weights, backward_passes_per_step=2)
    found = []
    for _ in range(3):
        optimizer.zero_grad()
        for number in range(2):
            (_mine(weights[0]) + (_mine(weights[1]) if hvd.rank() == 1 and number == 0 else 0)).backward()
        optimizer.step()
        found.append(_firsts(weights))
    return found


def computed_again():
    """The same parameter: an error while it is not cleared. After that it begins anew, whoever has cleared it."""
    weights = _weights(2)
    optimizer = _optimizer(weights)
    found = []
    for clear in (optimizer.zero_grad, lambda: [setattr(weight, "grad", None) for weight in weights]):
        for _ in range(2):
            sum(map(_mine, weights)).backward()
            with pytest.raises(AssertionError, match="was computed more than backward_passes_per_step"):
                sum(map(_mine, weights)).backward()
            clear()
            sum(map(_mine, weights)).backward()
            found.append(_firsts(weights))
            clear()
    optimizer.step()
    return found


def assigned_gradients():
    """Those that no pass has computed are reduced in step(), beside ones that a pass has, and alone."""
    weights = _weights(2)
    optimizer = _optimizer(weights, op=hvd.Sum)
    found = []
    for with_pass in (True, True, False):
        optimizer.zero_grad()
        if with_pass:
            _mine(weights[0]).backward()
        weights[1].grad = torch.full((3,), hvd.rank() + 1.0)
        optimizer.step()
        found.append(_firsts(weights))
    return found


def a_rank_without_a_loss():
    """Gives zeros, once a step, also when the others make several passes up to the one that waits."""
    found = []
    for passes in (1, 2):
        weights = _weights(2)
        optimizer = _optimizer(weights, backward_passes_per_step=passes)
        for step in range(3):
            optimizer.zero_grad()
            if hvd.rank() == 0 or step == 0:
                for _ in range(passes):
                    sum(weight.sum() for weight in weights).backward()
            optimizer.step()
            found.append(_firsts(weights)[0])
    return found


def unequal_passes():
    """Rank 0 makes two passes in its first step, rank 1 one in each of two steps: an error on both, not a mixture of two steps."""
    weights = _weights(2)
    optimizer = _optimizer(weights)
    weights[0].sum().backward()
    if hvd.rank() == 1:
        optimizer.step()
        optimizer.zero_grad()
    with pytest.raises(hvd.HorovodInternalError) as caught:
        weights[1].sum().backward()
    optimizer.zero_grad()
    if hvd.rank() == 0:
        optimizer._gradients.begin_step()  # as many as the other rank
    weights[1].sum().backward()
    return str(caught.value), _firsts(weights)


def a_gradient_of_one_rank_computed_again():
    """Only this rank has cleared it: an error on the other one, whose gradient of this step it would not be."""
    weights = _weights(2)
    optimizer = _optimizer(weights)
    sum(map(_mine, weights)).backward()
    optimizer.step()
    optimizer.zero_grad()
    _mine(weights[0]).backward()
    if hvd.rank() == 0:
        weights[0].grad = None
    loss = _mine(weights[hvd.rank()])
    if hvd.rank() == 0:
        loss.backward()
        return "no error"
    with pytest.raises(hvd.HorovodInternalError) as caught:
        loss.backward()
    return str(caught.value)


def several_optimizers_in_a_pass():
    """Their gradients come in another order on each rank, from the first step on."""
    weights = _weights(4)
    optimizers = [_optimizer([weight], named_parameters=[(f"w{index}", weight)]) for index, weight in enumerate(weights)]
    for step in range(4):
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss = torch.zeros(())
        for index in (0, 1, 2, 3) if (hvd.rank() + step) % 2 else (3, 1, 2, 0):
            loss = loss + _mine(weights[index], index + 1.0)
        loss.backward()
        found = _firsts(weights)
        for optimizer in optimizers:
            optimizer.step()
    return found


def optimizers_that_one_rank_reaches():
    """In each step one of two: the other rank's step() takes part with zeros."""
    weights = _weights(2)
    optimizers = [_optimizer([weight], named_parameters=[(f"w{index}", weight)]) for index, weight in enumerate(weights)]
    found = []
    for step in range(3):
        for optimizer in optimizers:
            optimizer.zero_grad()
        sum(weight.sum() for weight in (weights if hvd.rank() == step % 2 or step == 0 else weights[:1])).backward()
        for optimizer in optimizers:
            optimizer.step()
        found.append(_firsts(weights))
    return found


class _Twice(nn.Module):
    """Everything in checkpoints that run passes of their own, one inside another; a layer that nothing uses."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.layers = nn.ModuleList(nn.Linear(3, 3, dtype=torch.float64) for _ in range(4))
        self.unused = nn.Linear(3, 3, dtype=torch.float64)

    def forward(self, x):
        x = checkpoint(self._two, x, use_reentrant=True)
        for layer in self.layers[2:]:
            x = checkpoint(layer, torch.tanh(x), use_reentrant=True)
        return x

    def _two(self, x):
        return checkpoint(self.layers[1], torch.tanh(checkpoint(self.layers[0], x, use_reentrant=True)), use_reentrant=True)


def passes_inside_a_pass():
    """Nothing is sent as zeros at the end of an inner one."""
    model, alone = _Twice(), _Twice()
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters())
    single = torch.optim.SGD(alone.parameters(), lr=0.1)
    is_right = True
    for step in range(3):
        x = torch.randn(4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(step)).requires_grad_()
        for each, this, share in ((model, optimizer, x[2 * hvd.rank() : 2 * hvd.rank() + 2]), (alone, single, x)):
            this.zero_grad()
            each(share).square().mean().backward()
        for (name, ours), theirs in zip(model.named_parameters(), alone.parameters()):
            if "unused" in name:
                is_right &= ours.grad is None
            else:
                is_right &= bool(torch.allclose(ours.grad, theirs.grad, atol=1e-12))
        optimizer.step()
        single.step()
    return is_right


class _Raising(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return x.clone()

    @staticmethod
    def backward(context, gradient):
        raise ZeroDivisionError("in a pass")


def a_pass_that_raises_on_all_ranks():
    """Before a gradient has come, after one, and when it has been sent: the next pass is as if that one had not been."""
    found = []
    for step in range(4):
        early, late = _weights(2)
        if step == 0:
            weights = [early, late]
            optimizer = _optimizer(weights, groups=2)
        early, late = weights
        optimizer.zero_grad()
        with pytest.raises(ZeroDivisionError):
            (_mine(late) + _mine(_Raising.apply(early * 1))).backward()
        if step % 2 == 0:
            optimizer.zero_grad()
        else:
            for weight in weights:
                weight.grad = None
        sum(map(_mine, weights)).backward()
        found.append(_firsts(weights))
        optimizer.step()
    return found == [[1.5, 1.5]] * 4


def a_pass_that_raises_on_one_rank():
    """When one of its gradients has been sent: the others learn of it, and it goes on."""
    first, second = weights = _weights(2)
    optimizer = _optimizer(weights, groups=[[first], [second]])
    sum(map(_mine, weights)).backward()
    optimizer.step()
    optimizer.zero_grad()
    said = None
    if hvd.rank() == 0:
        with pytest.raises(ZeroDivisionError):
            (_mine(_Raising.apply(first * 1)) + _mine(second)).backward()
    else:
        with pytest.raises(hvd.HorovodInternalError) as caught:
            sum(map(_mine, weights)).backward()
        said = str(caught.value)
    optimizer.zero_grad()
    sum(map(_mine, weights)).backward()
    return said, _firsts(weights)


def steps_in_hooks():
    """The optimizer in the backward pass: a step for each parameter as its gradient comes, and the gradient goes."""
    weights = _weights(3)
    optimizers = {weight: _optimizer([weight], named_parameters=[(f"w{index}", weight)]) for index, weight in enumerate(weights)}

    def step(weight):
        optimizers[weight].step()
        optimizers[weight].zero_grad()

    for weight in weights:
        weight.register_post_accumulate_grad_hook(step)
    for _ in range(3):
        sum(map(_mine, weights)).backward()
    return [weight[0].item() for weight in weights], _firsts(weights)


def _change_in_place(weight):
    weight.grad.mul_(2.0)


def _replace(weight):
    weight.grad = weight.grad * 2.0


def _remove(weight):
    weight.grad = None


def gradients_changed_in_hooks():
    """On one rank, while they are sent: an error on all, which names the parameter and the rank."""
    said = []
    for change in (_change_in_place, _replace, _remove):
        weights = _weights(2, 100)
        optimizer = _optimizer(weights, named_parameters=[("a", weights[0]), ("b", weights[1])], groups=2)
        sum(map(_mine, weights)).backward()
        optimizer.step()
        optimizer.zero_grad()
        if hvd.rank() == 1:
            weights[1].register_post_accumulate_grad_hook(change)
        with pytest.raises(hvd.HorovodInternalError) as caught:
            sum(map(_mine, weights)).backward()
        said.append(str(caught.value))
    return said


def changed_before_it_is_taken():
    """In hooks that run before the optimizer's own, and after backward(): that is the program's right."""
    weights = _weights(2)
    weights[0].register_hook(lambda gradient: gradient * 2.0)
    optimizer = _optimizer(weights)
    found = []
    for _ in range(3):
        optimizer.zero_grad()
        sum(map(_mine, weights)).backward()
        weights[1].grad.mul_(10.0)
        optimizer.step()
        found.append(_firsts(weights))
    return found


def synchronize_again_does_nothing():
    weights = _weights(1)
    optimizer = _optimizer(weights, op=hvd.Sum)
    for _ in range(2):
        optimizer.zero_grad()
        _mine(weights[0]).backward()
        for _ in range(3):
            optimizer.synchronize()
        with optimizer.skip_synchronize():
            optimizer.step()
    return weights[0][0].item()


def a_pass_in_another_thread():
    weights = _weights(2)
    optimizer = _optimizer(weights)
    found = []
    for _ in range(2):
        optimizer.zero_grad()
        thread = threading.Thread(target=lambda: sum(map(_mine, weights)).backward())
        thread.start()
        thread.join()
        found.append(_firsts(weights))
        optimizer.step()
    return found


def passes_after_a_rank_has_joined():
    """Two passes in each step: a gradient that is reduced does not go out again, with zeros of the rank that has joined."""
    weights = _weights(2)
    optimizer = _optimizer(weights)
    found = []
    for _ in range(3 - 2 * hvd.rank()):
        optimizer.zero_grad()
        for weight in weights:
            weight.sum().backward()
        found.append(_firsts(weights))
        optimizer.step()
    hvd.join()
    return found


def closures_of_ranks_with_unequal_passes():
    """SAM's first pass, on one rank only."""
    weights = _weights(1)
    optimizer = _optimizer(weights)

    def closure():
        optimizer.zero_grad()
        loss = weights[0].sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    optimizer.zero_grad()
    with pytest.raises(hvd.HorovodInternalError) as caught:
        if hvd.rank() == 0:
            weights[0].sum().backward()
        optimizer.step(closure)
    return str(caught.value)


UNEQUAL = "DistributedOptimizer: the ranks of the process set have run backward() unequally often in a step: rank 0 is in {}, rank 1 is in {}; "
CHANGED = "DistributedOptimizer: rank 1 of the process set: the gradient of b was changed or removed while it was being reduced; "
FAILED = "DistributedOptimizer: rank 0 of the process set: its backward pass raised an error, so that gradients of this step are missing"
AGAIN = "DistributedOptimizer: another rank has computed the gradient of allreduce.noname.0.0 again in the same step, which this rank has "

CASES = {
    reduced_when_backward_returns: True,
    sparse_ones_too: [[0.5, 0.5, 0.0]] * 4,
    the_last_of_several_passes_waits: True,
    passes_that_reach_different_parameters: True,
    cleared_between_passes: [[3.0, 3.0]] * 2,
    in_several_passes_each: [[6.0, 60.0]] * 3,
    too_few_passes_on_one_rank: [[3.0, 1.0]] * 3,
    computed_again: [[1.5, 1.5]] * 4,
    assigned_gradients: [[3.0, 3.0], [3.0, 3.0], [None, 3.0]],
    a_rank_without_a_loss: [1.0, 0.5, 0.5, 2.0, 1.0, 1.0],
    several_optimizers_in_a_pass: [1.5, 3.0, 4.5, 6.0],
    optimizers_that_one_rank_reaches: [[1.0, 1.0], [1.0, 0.5], [1.0, 0.5]],
    passes_inside_a_pass: True,
    a_pass_that_raises_on_all_ranks: True,
    steps_in_hooks: ([-4.5] * 3, [None] * 3),
    changed_before_it_is_taken: [[3.0, 15.0]] * 3,
    synchronize_again_does_nothing: -6.0,
    a_pass_in_another_thread: [[1.5, 1.5]] * 2,
}
TEXTS = {  # or what differs by rank
    unequal_passes: None,
    gradients_changed_in_hooks: None,
    a_pass_that_raises_on_one_rank: None,
    closures_of_ranks_with_unequal_passes: None,
    passes_after_a_rank_has_joined: None,
    a_gradient_of_one_rank_computed_again: None,
}


def _all():
    hvd.init()
    return cases.run({**CASES, **TEXTS})


outcomes = cases.fixture(_all)


@pytest.mark.parametrize("case", CASES)
def test_passes(outcomes, case):
    for outcome in outcomes:
        assert outcome[case.__name__] == CASES[case]


def test_ranks_that_make_unequal_numbers_of_passes_get_an_error(outcomes):
    for outcome in outcomes:
        text, after = outcome["unequal_passes"]
        assert text.startswith(UNEQUAL.format("step 1", "step 2"))
        assert after == [None, 1.0]
        assert outcome["closures_of_ranks_with_unequal_passes"].startswith(
            UNEQUAL.format("step 2", "step 2, evaluation 1 of its closure")
        )


def test_a_gradient_that_is_changed_while_it_is_sent_is_an_error_on_all_ranks(outcomes):
    for outcome in outcomes:
        assert [text[: len(CHANGED)] for text in outcome["gradients_changed_in_hooks"]] == [CHANGED] * 3


def test_the_failure_of_a_pass_is_told_to_those_that_wait_for_it(outcomes):
    found = [outcome["a_pass_that_raises_on_one_rank"] for outcome in outcomes]
    assert found == [(None, [1.5, 1.5]), (FAILED, [1.5, 1.5])]


def test_nothing_is_reduced_twice_after_a_join(outcomes):
    found = [outcome["passes_after_a_rank_has_joined"] for outcome in outcomes]
    assert found == [[[1.0, 1.0], [0.5, 0.5], [0.5, 0.5]], [[1.0, 1.0]]]


def test_a_gradient_that_only_one_rank_has_cleared_is_an_error(outcomes):
    found = [outcome["a_gradient_of_one_rank_computed_again"] for outcome in outcomes]
    assert found[0] == "no error"
    assert found[1].startswith(AGAIN)
