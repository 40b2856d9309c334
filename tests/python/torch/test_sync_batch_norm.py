"""python/runjob/torch/sync_batch_norm.py: normalization on two ranks is BatchNorm over both ranks' batches in one process."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

import cases
import runjob.torch as hvd

SHAPES = {"2d": (7, 4, 5, 6), "1d": (9, 4), "sequence": (5, 4, 8), "3d": (3, 4, 2, 3, 2)}
LAYERS = {2: nn.BatchNorm1d, 3: nn.BatchNorm1d, 4: nn.BatchNorm2d, 5: nn.BatchNorm3d}


def _batches(shape, dtype=torch.float32, mean=0.0, sizes=None):
    """A batch for each rank, of different sizes."""
    torch.manual_seed(3)
    sizes = sizes or [shape[0] + 2 * rank for rank in range(hvd.size())]
    offsets = mean * (1 + torch.arange(shape[1], dtype=torch.float64).view(1, -1, *[1] * (len(shape) - 2)))
    return [(torch.randn(size, *shape[1:], dtype=torch.float64) * 1.5 + offsets).to(dtype) for size in sizes]


def _differences(batches, make=lambda layer: layer, memory_format=torch.contiguous_format, steps=2, convert=False, **options):
    """The largest differences between this rank's part of BatchNorm over all batches, and SyncBatchNorm over this rank's."""
    channels = batches[0].shape[1]
    alone = make(LAYERS[batches[0].dim()](channels, **options))
    ours = hvd.SyncBatchNorm.convert_sync_batchnorm(copy.deepcopy(alone)) if convert else make(hvd.SyncBatchNorm(channels, **options))
    ours.load_state_dict(alone.state_dict())
    first = sum(map(len, batches[: hvd.rank()]))
    part = slice(first, first + len(batches[hvd.rank()]))
    found = []
    for step in range(steps):
        everything = torch.cat(batches).requires_grad_()
        mine = batches[hvd.rank()].clone(memory_format=memory_format).requires_grad_()
        expected, output = alone(everything), ours(mine)
        torch.manual_seed(step)
        seeds = torch.randn(everything.shape).to(everything.dtype)
        alone.zero_grad()
        ours.zero_grad()
        expected.backward(seeds)
        output.backward(seeds[part])
        pairs = [(expected[part], output), (everything.grad[part], mine.grad)]
        for theirs, own in zip(alone.parameters(), ours.parameters()):
            pairs.append((theirs.grad, hvd.allreduce(own.grad, op=hvd.Sum)))
        pairs += [(a, b) for a, b in zip(alone.buffers(), ours.buffers())]
        found += [_relative(*pair) for pair in pairs]
    return max(found)


def _relative(expected, actual):
    assert expected.shape == actual.shape and expected.dtype == actual.dtype, (expected.dtype, actual.dtype)
    if expected.numel() == 0:
        return 0.0
    expected, actual = expected.detach().double(), actual.detach().double()
    return float((expected - actual).abs().max() / expected.abs().max().clamp(min=1e-30))


def _weighted(layer):
    torch.manual_seed(8)
    for parameter in layer.parameters():
        nn.init.uniform_(parameter, 0.5, 2.0)
    return layer


def every_shape():
    return max(_differences(_batches(shape), make=_weighted) for shape in SHAPES.values()) < 1e-5


def every_option():
    options = ({"affine": False}, {"track_running_stats": False}, {"momentum": None}, {"momentum": 0.3, "eps": 0.1})
    return max(_differences(_batches(SHAPES["2d"]), make=_weighted if "affine" not in each else lambda x: x, **each) for each in options) < 1e-5


def in_double():
    return _differences(_batches(SHAPES["2d"], torch.float64), make=lambda layer: _weighted(layer).double()) < 1e-12


#: Of the largest value, what rounding to the bits of the fraction costs. Gradients of parameters are sums of rounded ones.
BITS = {torch.bfloat16: 2**-7, torch.float16: 2**-9}


def in_half():
    """Parameters and statistics are float32, as BatchNorm has them with such an input, and as autocast() gives it."""
    return [max(_differences(_batches(shape, dtype), make=_weighted) for shape in SHAPES.values()) < bound for dtype, bound in BITS.items()]


def all_in_half():
    """Parameters and statistics too: module.bfloat16()."""
    found = []
    for dtype, bound in BITS.items():
        batches = [_batches(shape, dtype) for shape in SHAPES.values()]
        for options in ({}, {"affine": False}, {"track_running_stats": False}, {"momentum": None}):
            make = (lambda layer: _weighted(layer).to(dtype)) if options.get("affine", True) else (lambda layer: layer.to(dtype))
            found += [_differences(each, make=make, **options) < 2 * bound for each in batches]
        found.append(_differences(batches[0], make=make, convert=True) < 2 * bound)
    return all(found), len(found)


def evaluated_in_half():
    """After a step of training, and with parameters of both kinds."""
    same = []
    for dtype in BITS:
        for layer in (hvd.SyncBatchNorm(4), hvd.SyncBatchNorm(4).to(dtype)):
            batch = _batches(SHAPES["2d"], dtype)[0]
            layer(batch)
            alone = nn.BatchNorm2d(4).to(layer.weight.dtype)
            alone.load_state_dict(layer.state_dict())
            output = layer.eval()(batch)
            same.append(torch.equal(output, alone.eval()(batch)) and output.dtype == dtype)
    return same


def under_autocast():
    """The convolution's output is bfloat16, the layer's parameters are float32."""
    torch.manual_seed(2)
    model = nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4))
    ours = hvd.SyncBatchNorm.convert_sync_batchnorm(copy.deepcopy(model))
    everything = torch.randn(6, 3, 5, 5)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        expected, output = model(everything), ours(everything.chunk(2)[hvd.rank()])
        expected.float().square().sum().backward()
        output.float().square().sum().backward()
    gradients = [_relative(theirs.grad, hvd.allreduce(own.grad, op=hvd.Sum)) for theirs, own in zip(model[1].parameters(), ours[1].parameters())]
    return output.dtype == expected.dtype == torch.bfloat16, _relative(expected.chunk(2)[hvd.rank()], output) < 2**-7, max(gradients) < 2**-6


def other_dtypes_are_refused_as_by_batch_norm():
    refused = []
    for layer in (nn.BatchNorm1d(4).bfloat16(), hvd.SyncBatchNorm(4).bfloat16()):
        try:
            layer(torch.randn(8, 4))
            refused.append("nothing was raised")
        except RuntimeError:
            refused.append("refused")
    return refused


def channels_last():
    return _differences(_batches(SHAPES["2d"]), make=_weighted, memory_format=torch.channels_last) < 1e-5


def in_pieces():
    """More than what fits into one piece of the backward pass."""
    return _differences(_batches((5, 4, 260, 260)), make=_weighted, steps=1) < 1e-4


def mean_much_larger_than_deviation():
    """1,000 to 4,000 times, compared with float64: float32 itself has the values to 2e-4 of the deviation."""
    rounded = [batch.requires_grad_() for batch in _batches(SHAPES["2d"], mean=1500.0)]
    everything = torch.cat(rounded).detach().double().requires_grad_()
    alone, ours = nn.BatchNorm2d(4).double(), hvd.SyncBatchNorm(4)
    expected, mine = alone(everything), rounded[hvd.rank()]
    output = ours(mine)
    first = sum(map(len, rounded[: hvd.rank()]))
    part = slice(first, first + len(output))
    expected.pow(3).sum().backward()
    output.backward(3 * expected[part].detach().square().float())
    return (
        bool((output.double() - expected[part]).abs().max() < 2e-3),
        _relative(everything.grad[part], mine.grad.double()) < 1e-3,
        _relative(alone.running_var, ours.running_var.double()) < 1e-6,
    )


def a_rank_without_samples():
    found = [_differences(_batches(SHAPES["2d"], sizes=sizes), make=_weighted) for sizes in ([6, 0], [0, 6])]
    return max(found) < 1e-5


def too_few_values():
    layer, texts = hvd.SyncBatchNorm(3), []
    for count in (1 - hvd.rank(), 0):
        with pytest.raises(ValueError) as caught:
            layer(torch.ones(count, 3))
        texts.append(str(caught.value))
    one_each = layer(torch.full((1, 3), float(hvd.rank())))  # alone, a rank would have too few
    return texts, (one_each * (2 * hvd.rank() - 1) > 0.99).all().item()


def wrong_shapes():
    texts = []
    for shape in ((3,), (2, 4)):
        with pytest.raises(ValueError) as caught:
            hvd.SyncBatchNorm(3)(torch.ones(shape))
        texts.append(str(caught.value))
    return texts


def evaluation():
    """With running statistics no rank waits for another, so ranks need not evaluate alike."""
    layer = hvd.SyncBatchNorm(4)
    layer(_batches(SHAPES["1d"])[hvd.rank()])
    layer.eval()
    results = [layer(torch.ones(2, 4)) for _ in range(1 + 3 * hvd.rank())]
    return torch.equal(results[0], nn.functional.batch_norm(torch.ones(2, 4), layer.running_mean, layer.running_var))


def conversion():
    """Parameters stay the same objects, whatever is nested; other layers stay."""
    model = nn.Sequential(nn.Conv2d(2, 4, 1), nn.Sequential(nn.BatchNorm2d(4, eps=0.1, momentum=None)), nn.LazyBatchNorm2d())
    model[1].eval()
    weight = model[1][0].weight
    converted = hvd.SyncBatchNorm.convert_sync_batchnorm(model)
    layer = converted[1][0]
    assert hvd.SyncBatchNorm.convert_sync_batchnorm(layer) is layer
    kinds = [type(module).__name__ for module in (converted[0], layer, converted[2])]
    return converted is model, kinds, layer.weight is weight, (layer.eps, layer.momentum, layer.training, layer.affine)


def converted_layers_compute_the_same():
    return max(_differences(_batches(shape), make=_weighted, convert=True) for shape in SHAPES.values()) < 1e-5


def without_gradients():
    layer = hvd.SyncBatchNorm(4)
    with torch.no_grad():
        output = layer(_batches(SHAPES["1d"])[hvd.rank()])
    first = layer(_batches(SHAPES["1d"])[hvd.rank()])  # of a network: the input has no gradient
    first.sum().backward()
    return output.requires_grad, layer.bias.grad.tolist() == [float(9 + 2 * hvd.rank())] * 4


def two_operations_for_a_step():
    from runjob import handles

    names, run = [], handles.run
    handles.run = lambda call: names.append((call.kind.name, call.name)) or run(call)
    try:
        hvd.SyncBatchNorm(4)(_batches(SHAPES["2d"])[hvd.rank()].requires_grad_()).sum().backward()
    finally:
        handles.run = run
    return names


def training():
    """A network on two ranks learns what it learns alone on everything."""
    found = []
    torch.manual_seed(0)
    data, target = torch.randn(12, 3, 4, 4, dtype=torch.float64), torch.randn(12, 2, dtype=torch.float64)
    for is_distributed in (False, True):
        torch.manual_seed(1)
        model = nn.Sequential(nn.Conv2d(3, 4, 2), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(36, 2)).double()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        if is_distributed:
            model = hvd.SyncBatchNorm.convert_sync_batchnorm(model)
            optimizer = hvd.DistributedOptimizer(optimizer, model.named_parameters())
        for _ in range(5):
            x, y = (each.chunk(2)[hvd.rank()] if is_distributed else each for each in (data, target))
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
        found.append(torch.cat([value.detach().double().flatten() for value in model.state_dict().values()]))
    return bool((found[0] - found[1]).abs().max() < 1e-9)


def a_rank_that_has_joined():
    """Its row counts for nothing: the other one gets what BatchNorm makes of its own batch."""
    if hvd.rank() == 1:
        hvd.join()
        return True
    batch = _batches(SHAPES["2d"])[0]
    ours, alone = batch.clone().requires_grad_(), batch.clone().requires_grad_()
    hvd.SyncBatchNorm(4)(ours).square().sum().backward()
    nn.BatchNorm2d(4)(alone).square().sum().backward()
    hvd.join()
    return torch.allclose(ours.grad, alone.grad, atol=1e-6)


CASES = {
    every_shape: True,
    every_option: True,
    in_double: True,
    in_half: [True, True],
    all_in_half: (True, 34),
    evaluated_in_half: [True] * 4,
    under_autocast: (True, True, True),
    other_dtypes_are_refused_as_by_batch_norm: ["refused", "refused"],
    channels_last: True,
    in_pieces: True,
    mean_much_larger_than_deviation: (True, True, True),
    a_rank_without_samples: True,
    too_few_values: (
        [f"SyncBatchNorm needs two values for each channel in training; all ranks have {count} together" for count in (1, 0)], True,
    ),
    wrong_shapes: ["SyncBatchNorm(3) takes (N, 3, ...), not (3,)", "SyncBatchNorm(3) takes (N, 3, ...), not (2, 4)"],
    evaluation: True,
    conversion: (True, ["Conv2d", "SyncBatchNorm", "LazyBatchNorm2d"], True, (0.1, None, False, True)),
    converted_layers_compute_the_same: True,
    without_gradients: (False, True),
    two_operations_for_a_step: [("allreduce", "sync_batch_norm.forward.4"), ("allreduce", "sync_batch_norm.backward.4")],
    training: True,
    a_rank_that_has_joined: True,
}  # fmt: skip


def _all():
    hvd.init()
    return cases.run(CASES)


outcomes = cases.fixture(_all)


@pytest.mark.parametrize("case", CASES)
def test_sync_batch_norm(outcomes, case):
    for outcome in outcomes:
        assert outcome[case.__name__] == CASES[case]


def _set_of_ranks():
    some = hvd.ProcessSet([0, 2])
    hvd.init(process_sets=[some])
    batches = [torch.randn(4, 3, generator=torch.Generator().manual_seed(rank)) for rank in range(3)]
    output = hvd.SyncBatchNorm(3, process_set=some)(batches[hvd.rank()])
    together = torch.cat([batches[0], batches[2]]) if some.included() else batches[1]
    first = 4 if hvd.rank() == 2 else 0
    return torch.allclose(output, nn.BatchNorm1d(3)(together)[first : first + 4], atol=1e-5)


def test_a_set_of_ranks_normalizes_its_own_batches(call_ranks):
    assert call_ranks(_set_of_ranks, 3) == [True] * 3


def _alone():
    hvd.init()
    same = []
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        batch = torch.randn(4, 3).to(dtype)
        same.append(torch.equal(hvd.SyncBatchNorm(3).to(dtype)(batch), nn.BatchNorm1d(3).to(dtype)(batch)))
    return same


def test_one_rank_alone_has_batch_norm(call_ranks):
    assert call_ranks(_alone, 1) == [[True] * 3]


def _in_a_set_that_nobody_registered():
    hvd.init()
    with pytest.raises(ValueError, match="is not registered"):
        hvd.SyncBatchNorm(3, process_set=hvd.ProcessSet([0]))(torch.randn(4, 3))
    return True


def test_a_set_that_nobody_registered_is_refused(call_ranks):
    assert call_ranks(_in_a_set_that_nobody_registered, 2) == [True] * 2
