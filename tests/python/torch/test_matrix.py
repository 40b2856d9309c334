"""Every collective against NumPy: every dtype and reduction, odd, empty and large shapes, non-contiguous and in-place tensors, 1 to 8
ranks, through shared memory and through Gloo."""

import itertools

import numpy
import pytest
import torch

DTYPES = {
    torch.uint8: numpy.uint8, torch.int8: numpy.int8, torch.int16: numpy.int16, torch.int32: numpy.int32, torch.int64: numpy.int64,
    torch.float16: numpy.float16, torch.bfloat16: numpy.float32, torch.float32: numpy.float32, torch.float64: numpy.float64,
    torch.bool: numpy.bool_,
}  # fmt: skip
#: Rows; the sum of the others decides whether a message is small, in pieces, or read directly.
SHAPES = [(), (0,), (1,), (7,), (3, 0, 2), (5, 3), (13, 11, 3), (331, 127), (1031, 257)]
#: Under one name: the library takes another way with what it has seen before.
TURNS = 2
LAYOUTS = ["contiguous", "transposed", "strided", "in place"]


def values_of(rank, shape, dtype, seed):
    """Small enough for sums and products of 8 ranks to be exact in every dtype, the same wherever they are computed."""
    random = numpy.random.default_rng([seed, rank])
    if dtype is torch.bool:
        return random.integers(0, 2, shape).astype(numpy.bool_)
    signs = 1 if dtype is torch.uint8 else random.choice([-1, 1], shape)
    return (random.integers(1, 3, shape) * signs).astype(DTYPES[dtype])


def to_torch(array, dtype, layout="contiguous"):
    tensor = torch.from_numpy(numpy.ascontiguousarray(array)).reshape(array.shape).to(dtype).clone()
    if layout == "transposed" and tensor.dim() >= 2:
        return tensor.transpose(0, -1).contiguous().transpose(0, -1)
    if layout == "strided" and tensor.dim() >= 1:
        wide = torch.zeros((*tensor.shape[:-1], 2 * tensor.shape[-1]), dtype=dtype)
        wide[..., ::2] = tensor
        return wide[..., ::2]
    return tensor


def to_numpy(tensor):
    return (tensor.float() if tensor.dtype is torch.bfloat16 else tensor).numpy()


def reduced(arrays, dtype, op):
    """As NumPy computes it, in a type that holds everything; averages of integers truncate toward zero."""
    wide = numpy.stack(arrays).astype(numpy.float64)
    if dtype is torch.bool:
        wide = {"Sum": wide.max(0), "Max": wide.max(0), "Product": wide.min(0), "Min": wide.min(0)}[op]
        return wide.astype(numpy.bool_)
    result = {"Sum": wide.sum, "Average": wide.mean, "Min": wide.min, "Max": wide.max, "Product": wide.prod}[op](0)
    if not dtype.is_floating_point:
        return numpy.trunc(result).astype(DTYPES[dtype])
    return to_numpy(torch.from_numpy(numpy.asarray(result)).to(dtype))


def check(name, got, expected):
    got = to_numpy(got)
    assert got.shape == expected.shape, f"{name}: {got.shape}, not {expected.shape}"
    if got.dtype.kind == "f" and "Average" in name:
        numpy.testing.assert_allclose(got, expected, rtol=1e-2 if got.dtype == numpy.float16 or "bfloat16" in name else 1e-6, err_msg=name)
    else:
        numpy.testing.assert_array_equal(got, expected, err_msg=name)


def reductions(hvd):
    rank, size = hvd.rank(), hvd.size()
    ops = {name: getattr(hvd, name) for name in ("Sum", "Average", "Min", "Max", "Product")}
    for seed, (dtype, op, shape) in enumerate(itertools.product(DTYPES, ops, SHAPES)):
        if dtype is torch.bool and op == "Average":
            continue
        arrays = [values_of(each, shape, dtype, seed) for each in range(size)]
        expected = reduced(arrays, dtype, op)
        layout = LAYOUTS[seed % len(LAYOUTS)]
        name = f"{dtype} {op} {shape} {layout}"
        for _ in range(TURNS):
            tensor = to_torch(arrays[rank], dtype, layout)
            if layout == "in place":
                hvd.allreduce_(tensor, op=ops[op], name=name)
                check(name, tensor, expected)
            else:
                check(name, hvd.allreduce(tensor, op=ops[op], name=name), expected)
            if not shape:
                continue
            rows = [shape[0] // size + (each < shape[0] % size) for each in range(size)]
            first = sum(rows[:rank])
            part = hvd.reducescatter(to_torch(arrays[rank], dtype, layout), op=ops[op], name=name)
            check(name, part, expected[first : first + rows[rank]])


def movements(hvd):
    rank, size = hvd.rank(), hvd.size()
    for seed, (dtype, shape) in enumerate(itertools.product(DTYPES, SHAPES)):
        root, layout = seed % size, LAYOUTS[seed % 3]
        name = f"{dtype} {shape} {layout}"
        array = values_of(rank, shape, dtype, seed)
        for _ in range(TURNS):
            check(name, hvd.broadcast(to_torch(array, dtype, layout), root, name=name), values_of(root, shape, dtype, seed))
        if not shape:
            continue
        shapes = [((shape[0] * (each + seed)) % (2 * shape[0] + 1), *shape[1:]) for each in range(size)]
        arrays = [values_of(each, of_rank, dtype, seed) for each, of_rank in enumerate(shapes)]
        for _ in range(TURNS):
            gathered = hvd.allgather(to_torch(arrays[rank], dtype, layout), name=name)
            check(name, gathered, numpy.concatenate(arrays))
        splits = [[(sender + receiver + seed) % 4 for receiver in range(size)] for sender in range(size)]
        arrays = [values_of(each, (sum(splits[each]), *shape[1:]), dtype, seed) for each in range(size)]
        parts = [numpy.split(arrays[each], numpy.cumsum(splits[each])[:-1])[rank] for each in range(size)]
        for _ in range(TURNS):
            received, counts = hvd.alltoall(to_torch(arrays[rank], dtype, layout), splits[rank], name=name)
            check(name, received, numpy.concatenate(parts))
        assert counts.tolist() == [splits[each][rank] for each in range(size)], name


def run_all():
    import runjob.torch as hvd

    hvd.init()
    reductions(hvd)
    movements(hvd)
    return hvd.size()


@pytest.mark.parametrize("np", [1, 2, 3, 8])
def test_every_collective_agrees_with_numpy(run_ranks, np):
    assert run_ranks(run_all, np).results == [np] * np


def test_every_collective_agrees_with_numpy_through_gloo(run_ranks, monkeypatch):
    monkeypatch.setenv("RUNJOB_SHARED_MEMORY", "0")
    assert run_ranks(run_all, 3).results == [3] * 3
