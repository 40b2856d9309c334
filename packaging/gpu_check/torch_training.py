"""Trainings with PyTorch on a GPU: optimizers in all their forms, normalization, states. Where one process can do the same on the rows of
all ranks, its model is what the ranks must come to.

A rank of a job: `runjob -np 2 python torch_training.py [NAME...]`; see checks.py.
"""

import copy

import torch
from torch import nn
from torch.nn import functional

import runjob.torch as hvd
from checks import check, device, run

BATCH = 16  # rows of a rank


def network(seed=0):
    torch.manual_seed(seed)
    layers = (nn.Linear(32, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 4))
    return nn.Sequential(*layers).to(device())


def rows(step):
    """The inputs and labels of all ranks in a step."""
    generator = torch.Generator("cpu").manual_seed(step)
    return (
        torch.randn(BATCH * hvd.size(), 32, generator=generator, device="cpu").to(device()),
        torch.randint(4, (BATCH * hvd.size(),), generator=generator, device="cpu").to(device()),
    )


def own(rows_of_all):
    return [each[hvd.rank() * BATCH : (hvd.rank() + 1) * BATCH] for each in rows_of_all]


def trained_alone(steps, optimizer_of):
    """The model when one process has trained it on the rows of all ranks."""
    model = network()
    optimizer = optimizer_of(model)
    for step in range(steps):
        inputs, labels = rows(step)
        optimizer.zero_grad()
        functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
    return model


def assert_close(model, expected, tolerance=1e-4):
    for (name, a), b in zip(model.named_parameters(), expected.parameters()):
        assert torch.allclose(a, b, atol=tolerance, rtol=tolerance), f"{name} differs by {(a - b).abs().max().item():.2g}"


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def trained_together(steps, optimizer_of=sgd, backwards=1, **options):
    model = network(hvd.rank())  # the ranks begin with different ones
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    optimizer = hvd.DistributedOptimizer(
        optimizer_of(model), named_parameters=model.named_parameters(), backward_passes_per_step=backwards, **options
    )
    for step in range(steps):
        inputs, labels = own(rows(step))
        optimizer.zero_grad()
        for part in range(backwards):
            share = slice(part * BATCH // backwards, (part + 1) * BATCH // backwards)
            functional.cross_entropy(model(inputs[share]), labels[share]).div(backwards).backward()
        optimizer.step()
    return model


@check
def optimizer_equals_one_process():
    assert_close(trained_together(10), trained_alone(10, sgd))


@check
def optimizer_with_adam():
    adam = lambda model: torch.optim.AdamW(model.parameters(), lr=0.01)  # noqa: E731
    assert_close(trained_together(10, adam), trained_alone(10, adam), 1e-3)


@check
def several_backward_passes():
    assert_close(trained_together(6, backwards=2), trained_alone(6, sgd))


@check
def compression():
    for how in (hvd.Compression.fp16, getattr(hvd.Compression, "bf16", hvd.Compression.fp16)):
        assert_close(trained_together(5, compression=how), trained_alone(5, sgd), 3e-2)


@check
def groups_of_gradients():
    assert_close(trained_together(5, groups=2), trained_alone(5, sgd))


@check
def predivided_gradients():
    assert_close(trained_together(5, gradient_predivide_factor=2.0), trained_alone(5, sgd))


@check
def clipped_gradients():
    def clip(model):
        return torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)

    expected = network()
    optimizer = sgd(expected)
    model = network()
    distributed = hvd.DistributedOptimizer(sgd(model), named_parameters=model.named_parameters())
    for step in range(5):
        inputs, labels = rows(step)
        optimizer.zero_grad()
        functional.cross_entropy(expected(inputs), labels).backward()
        clip(expected)
        optimizer.step()
        inputs, labels = own((inputs, labels))
        distributed.zero_grad()
        functional.cross_entropy(model(inputs), labels).backward()
        clip(model)
        distributed.step()
    assert_close(model, expected)


@check
def mixed_precision():
    model = network()
    optimizer = hvd.DistributedOptimizer(sgd(model), named_parameters=model.named_parameters())
    scaler = torch.amp.GradScaler("cuda")
    losses = []
    for step in range(20):
        inputs, labels = own(rows(0))
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.float16):
            loss = functional.cross_entropy(model(inputs), labels)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    assert losses[-1] < losses[0], losses


@check
def half_precision_model():
    model = network().to(torch.bfloat16)
    optimizer = hvd.DistributedOptimizer(sgd(model), named_parameters=model.named_parameters())
    inputs, labels = own(rows(0))
    first = None
    for _ in range(20):
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(inputs.to(torch.bfloat16)), labels)
        loss.backward()
        optimizer.step()
        first = loss.item() if first is None else first
    assert loss.item() < first


@check
def sparse_gradients():
    for as_dense in (False, True):
        torch.manual_seed(0)
        model = nn.Embedding(20, 4, sparse=True).to(device())
        expected = copy.deepcopy(model)
        optimizer = hvd.DistributedOptimizer(
            torch.optim.SGD(model.parameters(), lr=0.5), named_parameters=model.named_parameters(), sparse_as_dense=as_dense
        )
        indices = (torch.arange(BATCH * hvd.size()) % 7).to(device())
        model(own((indices,))[0]).square().mean().backward()
        optimizer.step()
        expected(indices).square().mean().backward()
        torch.optim.SGD(expected.parameters(), lr=0.5).step()
        assert_close(model, expected)


def _normalization(shape, sizes, options, dtype=torch.float32, memory_format=torch.contiguous_format, tolerance=1e-4):
    """SyncBatchNorm over the ranks' batches, which have `sizes` rows, beside BatchNorm2d over all of them, in float64."""
    first, rows = sum(sizes[: hvd.rank()]), sizes[hvd.rank()]
    whole, seeds = (
        torch.randn(sum(sizes), *shape, generator=torch.Generator().manual_seed(seed)).to(device(), dtype) for seed in (1, 2)
    )
    together = hvd.SyncBatchNorm(shape[0], **options).to(device(), dtype if dtype == torch.float64 else None)
    alone = nn.BatchNorm2d(shape[0], **options).to(device(), torch.float64)
    alone.load_state_dict(together.state_dict())
    part = whole[first : first + rows].contiguous(memory_format=memory_format).requires_grad_()
    whole = whole.double().requires_grad_()
    expected, found = alone(whole), together(part)
    expected.mul(seeds).sum().backward()
    found.mul(seeds[first : first + rows]).sum().backward()
    pairs = [(found, expected[first : first + rows]), (part.grad, whole.grad[first : first + rows])]
    pairs += [(hvd.allreduce(ours.grad, op=hvd.Sum), theirs.grad) for ours, theirs in zip(together.parameters(), alone.parameters())]
    pairs += list(zip(together.buffers(), alone.buffers()))
    for index, (ours, theirs) in enumerate(pairs):
        largest = float(theirs.abs().max()) if theirs.numel() else 0.0
        assert torch.allclose(ours.double(), theirs.double(), atol=tolerance * max(1.0, largest)), (index, options, sizes)


@check
def sync_batch_norm():
    even = [BATCH] * hvd.size()
    _normalization((6, 5, 5), even, {})
    _normalization((6, 5, 5), even, {}, torch.float64, tolerance=1e-11)
    _normalization((64, 28, 28), even, {}, memory_format=torch.channels_last)
    _normalization((6, 5, 5), [BATCH + 3 * rank for rank in range(hvd.size())], {"momentum": None})
    for options in ({}, {"affine": False}, {"track_running_stats": False}):
        for dtype in (torch.float16, torch.bfloat16):
            _normalization((6, 5, 5), even, options, dtype, tolerance=3e-2)
        for empty in range(hvd.size()) if hvd.size() > 1 else ():
            _normalization((6, 5, 5), [0 if rank == empty else BATCH for rank in range(hvd.size())], options)


@check
def sync_batch_norm_with_statistics_of_16_bits():
    layer = hvd.SyncBatchNorm(3).to(device(), torch.float16)
    layer(torch.ones(8, 3, 100, 100, device=device(), dtype=torch.float16))  # 80,000 values, more than float16 has
    assert torch.allclose(layer.running_mean.float(), torch.full((3,), 0.1, device=device()), atol=1e-3)
    assert torch.allclose(layer.running_var.float(), torch.full((3,), 0.9, device=device()), atol=1e-3)


@check
def optimizer_states():
    for fused in (False, True):
        model = network(hvd.rank())
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01 * (1 + hvd.rank()), fused=fused)
        for _ in range(1 + hvd.rank()):
            model(own(rows(0))[0]).sum().backward()
            optimizer.step()
        hvd.broadcast_parameters(model.state_dict(), root_rank=0)
        hvd.broadcast_optimizer_state(optimizer, root_rank=0)
        assert optimizer.param_groups[0]["lr"] == 0.01
        for state in optimizer.state.values():
            assert state["step"] == 1 and state["exp_avg"].is_cuda
            gathered = hvd.allgather(state["exp_avg"][None])
            assert gathered.eq(gathered[0]).all()


@check
def memory_does_not_grow():
    model = network()
    optimizer = hvd.DistributedOptimizer(sgd(model), named_parameters=model.named_parameters())
    sizes = []
    for step in range(60):
        inputs, labels = own(rows(step))
        optimizer.zero_grad()
        functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
        sizes.append(torch.cuda.max_memory_allocated())
    assert sizes[-1] <= sizes[20] * 1.2, sizes[::10]


@check
def join_with_uneven_steps():
    model = network()
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    optimizer = hvd.DistributedOptimizer(sgd(model), named_parameters=model.named_parameters())
    for step in range(3 + 2 * hvd.rank()):
        inputs, labels = own(rows(step))
        optimizer.zero_grad()
        functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
    last = hvd.join()
    assert last == hvd.size() - 1, last


@check
def default_device():
    torch.set_default_device(device())
    try:
        assert hvd.broadcast_object({"a": 1}, root_rank=0) == {"a": 1}
        assert hvd.allgather_object(hvd.rank()) == list(range(hvd.size()))
        assert_close(trained_together(3), trained_alone(3, sgd))
    finally:
        torch.set_default_device("cpu")


if __name__ == "__main__":
    run()
