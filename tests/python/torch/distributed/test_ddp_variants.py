"""DistributedDataParallel with the options and hooks that programs give it: over runjob it trains the model, bit for bit,
that it trains over Gloo.
"""

import pytest
import torch
import torch.distributed as dist
from both_backends import compared
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.distributed.algorithms.join import Join
from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

STEPS = 4


def plain():
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4))


class Branches(nn.Module):
    """Each rank uses another layer, so that the others get no gradient there."""

    def __init__(self):
        super().__init__()
        self.first, self.left, self.right = nn.Linear(8, 8), nn.Linear(8, 4), nn.Linear(8, 4)

    def forward(self, inputs):
        return (self.right if dist.get_rank() else self.left)(self.first(inputs))


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.last = nn.Embedding(30, 8, sparse=True), nn.Linear(8, 4)

    def forward(self, inputs):
        return self.last(self.table((inputs.abs() * 1000).long() % 30).mean(1))


def inputs_of(steps):
    generator = torch.Generator().manual_seed(dist.get_rank())
    return [torch.randn(6, 8, generator=generator) for _ in range(steps)]


def loss_of(model, inputs):
    return nn.functional.mse_loss(model(inputs).float(), inputs[:, :4])


def trained(model, optimizer=None, after_backward=lambda: None, steps=STEPS):
    """The parameters and buffers after some steps on data that differ between the ranks."""
    start = [parameter.detach().clone() for parameter in model.parameters()]
    optimizer = optimizer or torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    for inputs in inputs_of(steps):
        optimizer.zero_grad()
        loss_of(model, inputs).backward()
        after_backward()
        optimizer.step()
    assert not any(torch.equal(*pair) for pair in zip(start, model.parameters())), "a parameter was not trained"
    return [*model.parameters(), *model.buffers()]


def ddp(module, **options):
    return DistributedDataParallel(module, **options)


def unused_parameters():
    return trained(ddp(Branches(), find_unused_parameters=True))


def static_graph():
    return trained(ddp(plain(), static_graph=True))


def views_of_buckets():
    return trained(ddp(plain(), gradient_as_bucket_view=True, bucket_cap_mb=0.001))


def buffers():
    return trained(ddp(nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Linear(8, 4))))


def sparse_gradients():
    model = ddp(Words())
    return trained(model, torch.optim.SGD(model.parameters(), 0.5), steps=20)


def accumulation():
    model = ddp(plain())
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    first = [parameter.detach().clone() for parameter in model.parameters()]
    for number, inputs in enumerate(inputs_of(2 * STEPS)):
        if number % 2 == 0:
            with model.no_sync():
                loss_of(model, inputs).backward()
            continue
        loss_of(model, inputs).backward()
        optimizer.step()
        optimizer.zero_grad()
    assert not torch.equal(first[0], next(model.parameters()))
    return list(model.parameters())


def clipping():
    model, norms = ddp(plain()), []
    after_backward = lambda: norms.append(nn.utils.clip_grad_norm_(model.parameters(), 0.05))  # noqa: E731
    result = trained(model, after_backward=after_backward)
    assert min(norms) > 0.05
    return [*result, *norms]


def mixed_precision():
    model = ddp(plain())
    with torch.autocast("cpu", torch.bfloat16):
        assert model(torch.zeros(1, 8)).dtype == torch.bfloat16
        return trained(model)


def uneven_data():
    """Rank 1 has fewer batches, and joins."""
    model = ddp(plain())
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with model.join():
        for inputs in inputs_of(STEPS + 2 - 3 * dist.get_rank()):
            optimizer.zero_grad()
            loss_of(model, inputs).backward()
            optimizer.step()
    return list(model.parameters())


def hook(function, state=None):
    model = ddp(plain())
    model.register_comm_hook(state, function)
    return trained(model)


def fp16():
    return hook(default_hooks.fp16_compress_hook, dist.group.WORLD)


def bf16():
    return hook(default_hooks.bf16_compress_hook, dist.group.WORLD)


def power_sgd():
    """The hook waits for an operation in a function that the future of another one calls."""
    return hook(powerSGD_hook.powerSGD_hook, powerSGD_hook.PowerSGDState(dist.group.WORLD, 1, start_powerSGD_iter=2))


def zero_redundancy():
    model = ddp(plain())
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.05)
    result = trained(model, optimizer)
    optimizer.consolidate_state_dict(to=0)
    if dist.get_rank():
        return result
    state = optimizer.state_dict()["state"]
    assert len(state) == len(list(model.parameters()))
    return [*result, *(each["exp_avg"] for each in state.values())]


def zero_redundancy_with_uneven_data():
    model = ddp(plain())
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, lr=0.1)
    with Join([model, optimizer]):
        for inputs in inputs_of(STEPS - dist.get_rank()):
            loss_of(model, inputs).backward()
            optimizer.step()
            optimizer.zero_grad()
    return list(model.parameters())


def averaged_models():
    """Each rank trains by itself, and the models are averaged at every second step."""
    model, averager = plain(), PeriodicModelAverager(period=2, warmup_steps=0)
    after_backward = lambda: averager.average_parameters(model.parameters())  # noqa: E731
    trained(model, after_backward=after_backward)
    averager.average_parameters(model.parameters())
    return list(model.parameters())


def forked_workers():
    """Processes that the data loader forks from the rank load the data, during the training."""
    model, seen = ddp(plain()), []
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    data = TensorDataset(torch.cat(inputs_of(STEPS)))
    for _ in range(2):
        for (inputs,) in DataLoader(data, batch_size=6, num_workers=2, multiprocessing_context="fork"):
            optimizer.zero_grad()
            loss_of(model, inputs).backward()
            optimizer.step()
            seen.append(inputs.sum())
    assert len(seen) == 2 * STEPS
    return list(model.parameters())


PROGRAMS = [
    unused_parameters, static_graph, views_of_buckets, buffers, sparse_gradients, accumulation, clipping, mixed_precision,
    uneven_data, fp16, bf16, power_sgd, zero_redundancy, zero_redundancy_with_uneven_data, averaged_models, forked_workers,
]  # fmt: skip


def compare(name):
    return compared(globals()[name])


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_a_program_trains_what_it_trains_over_gloo(call_ranks, program):
    results = call_ranks(compare, 2, program.__name__)
    assert [is_same for is_same, _ in results] == [True, True]
    if program not in (buffers, zero_redundancy, averaged_models):  # there rank 0 returns more, or the ranks differ
        assert results[0][1] == results[1][1], "the ranks have different models"
