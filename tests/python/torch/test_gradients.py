"""python/runjob/torch/gradients.py: training on two ranks is training on both ranks' samples, whatever becomes of the parameters."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch
from torch import nn

import cases
import runjob.torch as hvd
from doubling import Doubling


STEPS = 4
BATCH = 8  # of both ranks together


def _net() -> nn.Module:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(5, 40), nn.Tanh(), nn.Linear(40, 30), nn.Tanh(), nn.Linear(30, 2))


def _samples(step: int) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(100 + step)
    return torch.randn(BATCH, 5, dtype=torch.float64), torch.randn(BATCH, 2, dtype=torch.float64)


def _mine(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.chunk(hvd.size())[hvd.rank()]


def _sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9, weight_decay=0.01)


def _adamw(parameters):
    return torch.optim.AdamW(parameters, lr=0.05, weight_decay=0.1)


def _run(model, optimizer, share, before_step=lambda step: None, loss=nn.functional.mse_loss):
    for step in range(STEPS):
        before_step(step)
        x, y = map(share, _samples(step))
        optimizer.zero_grad()
        loss(model(x), y).backward()
        optimizer.step()


def _differs(make_model, make_optimizer, change=lambda model, optimizer, step: None, wrap=lambda model: model, **options) -> float:
    """The largest difference of a weight between training alone on everything and training here on this rank's half."""
    weights = []
    for is_distributed in (False, True):
        model = make_model().double()
        optimizer = make_optimizer(model.parameters())
        if is_distributed:
            optimizer = hvd.DistributedOptimizer(optimizer, model.named_parameters(), **options)
        _run(wrap(model), optimizer, _mine if is_distributed else lambda t: t, lambda step: change(model, optimizer, step))
        weights.append([parameter.detach() for parameter in model.parameters()])
    return max(float((a - b).abs().max()) for a, b in zip(*weights))


def small_differences():
    """Of plain training with each optimizer, and with each way to divide gradients."""
    adam = lambda parameters: torch.optim.Adam(parameters, lr=0.05, weight_decay=0.1)  # noqa: E731
    found = [_differs(_net, make) for make in (_sgd, adam, _adamw)]
    found += [_differs(_net, _adamw, groups=groups) for groups in (1, 3, 100)]
    found.append(_differs(_net, _adamw, compression=Doubling))
    return max(found) < 1e-9


class Branches(nn.Module):
    """The second layer is used in odd steps only, the third never."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(5)
        self.always, self.sometimes, self.never = nn.Linear(5, 2), nn.Linear(5, 2), nn.Linear(5, 2)
        self.step = 0

    def forward(self, x):
        self.step += 1
        return self.always(x) + (self.sometimes(x) if self.step % 2 == 0 else 0)


def what_nobody_uses_stays_none():
    """So Adam's and weight decay's steps leave it alone, as in one process."""
    model = Branches()
    optimizer = hvd.DistributedOptimizer(_adamw(model.parameters()), model.named_parameters())
    model(torch.ones(1, 5)).sum().backward()
    optimizer.synchronize()
    grads = [layer.weight.grad is None for layer in (model.always, model.sometimes, model.never)]
    return _differs(Branches, _adamw) < 1e-9, _differs(Branches, _sgd, groups=2) < 1e-9, grads


def _freeze(model, optimizer, step):
    """The middle layer is frozen at first, then trained, then frozen again."""
    for parameter in model[2].parameters():
        parameter.requires_grad_(step in (1, 2))
        if step not in (1, 2):
            parameter.grad = None


def frozen_and_unfrozen():
    return _differs(_net, _adamw, _freeze) < 1e-9


def _add_group(model, optimizer, step):
    if step == 2:
        model.extra = nn.Parameter(torch.ones(2, dtype=torch.float64))
        model.register_forward_hook(lambda module, inputs, output: output * module.extra)
        optimizer.add_param_group({"params": [model.extra], "lr": 0.01})


def frozen_before_the_first_step():
    """After the backward pass in which their gradients came."""
    weights = [torch.zeros(1, requires_grad=True) for _ in range(2)]
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(weights, lr=1.0))
    (sum(weights) * (hvd.rank() + 1)).backward()
    weights[0].requires_grad_(False)
    optimizer.step()
    return weights[1].item()


def parameters_added_later():
    return _differs(_net, _sgd, _add_group) < 1e-9


def a_gradient_that_was_there_before_its_group():
    """A parameter added after its backward pass is reduced in the same step."""
    first, second = torch.zeros(1, requires_grad=True), torch.zeros(1, requires_grad=True)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([first], lr=1.0))
    for step in range(2):
        optimizer.zero_grad()
        ((first + second) * (hvd.rank() + 1)).backward()
        if step == 1:
            optimizer.add_param_group({"params": [second]})
        else:
            second.grad = None
        optimizer.step()
    return first.item(), second.item()


def order_of_arrival():
    """The ranks compute their gradients in different orders, changing from step to step."""
    torch.manual_seed(1)
    weights = [torch.zeros(50_000 + i, requires_grad=True) for i in range(40)]
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(weights, lr=1.0))
    for step in range(3):
        optimizer.zero_grad()
        order = torch.randperm(40, generator=torch.Generator().manual_seed(step * 2 + hvd.rank())).tolist()
        sum((weights[index] * (index + hvd.rank())).sum() for index in order).backward()
        optimizer.step()
    return all(bool((weight == -3 * (index + 0.5)).all()) for index, weight in enumerate(weights))


def two_optimizers():
    """A generator and a discriminator, whose parameters have the same names, and steps that are not in turn."""
    generator, critic = nn.Linear(2, 2), nn.Linear(2, 1)
    for layer in (generator, critic):
        nn.init.constant_(layer.weight, 0.5)
        nn.init.zeros_(layer.bias)
    first = hvd.DistributedOptimizer(torch.optim.SGD(generator.parameters(), lr=0.1), generator.named_parameters())
    second = hvd.DistributedOptimizer(torch.optim.SGD(critic.parameters(), lr=0.1), critic.named_parameters())
    for _ in range(3):
        noise = torch.full((1, 2), 1.0 + hvd.rank())
        for _ in range(2):
            second.zero_grad()
            critic(generator(noise).detach()).sum().backward()
            second.step()
        first.zero_grad()
        critic(generator(noise)).sum().backward()
        first.step()
        second.zero_grad()  # critic's gradients of the generator's step are not wanted
    both = torch.cat([parameter.detach().flatten() for layer in (generator, critic) for parameter in layer.parameters()])
    return torch.equal(hvd.allreduce(both, op=hvd.Max), both), bool(both.isfinite().all())


def _one_step(optimizer, factor=1):
    optimizer.zero_grad()
    weight = optimizer.param_groups[0]["params"][0]
    (weight * (hvd.rank() + 1) * factor).sum().backward()
    optimizer.step()
    return weight[0].item()


def optimizers_of_one_rank_alone():
    """One that does not step until the others have: as in elastic jobs, where older ranks have made more of them."""
    made = [hvd.DistributedOptimizer(torch.optim.SGD([torch.zeros(2, requires_grad=True)], lr=1.0)) for _ in range(2 + hvd.rank())]
    return [_one_step(optimizer) for optimizer in made[-2:]]


def optimizers_after_a_join():
    """Of the same form. They begin anew in another order, the last one with a gradient that was in flight when all ranks joined."""
    made = [hvd.DistributedOptimizer(torch.optim.SGD([torch.zeros(2, requires_grad=True)], lr=1.0), groups=1) for _ in range(3)]
    seen = [[_one_step(optimizer, 1 + index) for index, optimizer in enumerate(made[:2])] for _ in range(2)]
    (made[0].param_groups[0]["params"][0] * 100).sum().backward()
    hvd.join()
    for order in ((1, 2, 0), (0, 1, 2)):
        values = {}
        for index in order:
            made[index].load_state_dict(made[index].state_dict())  # drops what is in flight
            values[index] = _one_step(made[index], 1 + index)
        seen.append([values[index] for index in range(3)])
    return seen, [optimizer._gradients.name for optimizer in made]


def clipping():
    found = []
    for is_distributed in (False, True):
        model = _net().double()
        optimizer = _sgd(model.parameters())
        if is_distributed:
            optimizer = hvd.DistributedOptimizer(optimizer, model.named_parameters())
        for step in range(STEPS):
            x, y = (_mine(t) if is_distributed else t for t in _samples(step))
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            if not is_distributed:
                nn.utils.clip_grad_norm_(model.parameters(), 0.1)
                optimizer.step()
                continue
            optimizer.synchronize()
            nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            with optimizer.skip_synchronize():
                optimizer.step()
        found.append(torch.cat([parameter.detach().flatten() for parameter in model.parameters()]))
    return bool((found[0] - found[1]).abs().max() < 1e-9)


def scaled_losses():
    """One rank's gradients overflow: all ranks leave that step out and lower the scale alike."""
    weight = torch.zeros(2, requires_grad=True)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=1.0))
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=100)
    for step in range(3):
        optimizer.zero_grad()
        factor = float("inf") if step == 1 and hvd.rank() == 1 else hvd.rank() + 1.0
        scaler.scale((weight * factor).sum()).backward()
        optimizer.synchronize()
        scaler.unscale_(optimizer)
        with optimizer.skip_synchronize():
            scaler.step(optimizer)
        scaler.update()
    return weight.tolist(), scaler.get_scale()


def compiled():
    def compile(model):
        return torch.compile(model, backend="aot_eager")

    return _differs(_net, _adamw, wrap=compile) < 1e-9


def another_job():
    """After shutdown() and init() the gradients travel anew; what was in flight is gone."""
    weight = torch.zeros(100_000, requires_grad=True)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=1.0))
    for step in range(4):
        if step == 2:
            (weight * 0).sum().backward()
            hvd.allreduce(torch.ones(1), name="before the end")
            hvd.shutdown()
            hvd.init()
            optimizer.load_state_dict(optimizer.state_dict())
        optimizer.zero_grad()
        (weight * (hvd.rank() + 1)).sum().backward()
        optimizer.step()
    return weight[0].item()


def uneven_data():
    """A rank that has joined takes part with zeros."""
    weight = torch.zeros(2, requires_grad=True)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=1.0))
    for _ in range(3 - hvd.rank()):
        optimizer.zero_grad()
        weight.sum().backward()
        optimizer.step()
    return hvd.join(), weight[0].item() == (-2.0 if hvd.rank() else -2.5)


def nothing_remains():
    """Hooks and memory go with the optimizer; gradients stay."""
    weight = torch.zeros(3, requires_grad=True)
    for _ in range(2):
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=1.0))
        for step in range(2):
            optimizer.zero_grad()
            (weight * (step + hvd.rank())).sum().backward()
            optimizer.step()
        bucket = weakref.ref(optimizer._gradients._layout.closing)
        del optimizer
    gc.collect()
    return len(weight._post_accumulate_grad_hooks), bucket(), weight.grad.tolist()


def different_parameters():
    """What the ranks cannot agree on is said on all of them, and again until it is put right."""
    said = []
    for count in (1 + hvd.rank(), 2 - hvd.rank()):
        weights = [torch.zeros(1, requires_grad=True) for _ in range(count)]
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD(weights, lr=1.0))
        for what in (sum(weights).backward, optimizer.step):
            with pytest.raises(hvd.HorovodInternalError) as caught:
                what()
            said.append(str(caught.value))
    return said


CASES = {
    small_differences: True,
    what_nobody_uses_stays_none: (True, True, [False, True, True]),
    frozen_and_unfrozen: True,
    frozen_before_the_first_step: -1.5,
    parameters_added_later: True,
    a_gradient_that_was_there_before_its_group: (-3.0, -1.5),
    order_of_arrival: True,
    two_optimizers: (True, True),
    optimizers_of_one_rank_alone: [-1.5, -1.5],
    optimizers_after_a_join: (
        [[-1.5, -3.0], [-3.0, -6.0], [-4.5, -9.0, -4.5], [-6.0, -12.0, -9.0]],
        ["DistributedOptimizer.2", "DistributedOptimizer.0", "DistributedOptimizer.1"],
    ),
    clipping: True,
    scaled_losses: ([-3.0, -3.0], 2.0),
    compiled: True,
    another_job: -6.0,
    uneven_data: (0, True),
    nothing_remains: (0, None, [1.5] * 3),
}


LACKING = "DistributedOptimizer: the gradient of allreduce.noname.0.1 is reduced on rank {} of the process set but not on rank {}; "


def _all():
    hvd.init()
    return cases.run({**CASES, different_parameters: None})


outcomes = cases.fixture(_all)


@pytest.mark.parametrize("case", CASES)
def test_gradients(outcomes, case):
    for outcome in outcomes:
        assert outcome[case.__name__] == CASES[case]


def test_ranks_with_different_parameters_are_told(outcomes):
    for outcome in outcomes:
        said = outcome["different_parameters"]
        assert len(said) == 4
        for text, (one, other) in zip(said, ((1, 0), (1, 0), (0, 1), (0, 1))):
            assert text.startswith(LACKING.format(one, other))
