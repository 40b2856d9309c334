"""Every collective against NumPy, for the module of any framework: every reduction, odd, empty and large shapes, arrays that are contiguous or
not, in place or not. The test of a module has a Framework, and calls run() with both on every rank.

The tests of the runtime's collectives try every dtype with every reduction and shape. Here only the dtypes of `Framework.crossed` take part in
all combinations. The others are in the lists of groups(), which checks the row of each dtype in the framework's table."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any, Callable, Sequence

import numpy

#: By name: what NumPy computes the expected values in.
DTYPES = {
    "uint8": numpy.uint8, "int8": numpy.int8, "uint16": numpy.uint16, "int16": numpy.int16, "int32": numpy.int32, "int64": numpy.int64,
    "float16": numpy.float16, "bfloat16": numpy.float32, "float32": numpy.float32, "float64": numpy.float64, "bool": numpy.bool_,
}  # fmt: skip
ONE_OF_EACH_SIZE = ("uint8", "bfloat16", "float32", "int64")
SHORT_INTEGERS = ("uint8", "int8", "uint16", "int16")
OPS = ("Sum", "Average", "Min", "Max", "Product")
#: Rows; the product of the others decides whether a message is small, in pieces, or read directly.
SHAPES = [(), (0,), (1,), (7,), (3, 0, 2), (5, 3), (13, 11, 3), (331, 127), (1031, 257)]
#: Under one name: the library takes another way with what it has seen before.
TURNS = 2
LAYOUTS = ["contiguous", "transposed", "strided", "in place"]


@dataclasses.dataclass
class Framework:
    """dtypes    the names of those that it has.
    make      (a NumPy array, the name of a dtype, a layout) -> an array of the framework.
    to_numpy  the other way; bfloat16 becomes float32.
    crossed   the names of the dtypes that are combined with every reduction, shape and layout.
    """

    dtypes: list[str]
    make: Callable[[numpy.ndarray, str, str], Any]
    to_numpy: Callable[[Any], numpy.ndarray]
    crossed: Sequence[str] = ONE_OF_EACH_SIZE


def values_of(rank, shape, dtype, seed):
    """Small enough for sums and products of 8 ranks to be exact in every dtype, the same wherever they are computed."""
    random = numpy.random.default_rng([seed, rank])
    if dtype == "bool":
        return random.integers(0, 2, shape).astype(numpy.bool_)
    signs = 1 if dtype.startswith("u") else random.choice([-1, 1], shape)
    return (random.integers(1, 3, shape) * signs).astype(DTYPES[dtype])


def any_values_of(rank, shape, dtype, seed):
    """Of the whole range of a short integer: sums do not fit into it, and averages do."""
    limits = numpy.iinfo(DTYPES[dtype])
    return numpy.random.default_rng([seed, rank]).integers(limits.min, limits.max, shape, endpoint=True).astype(DTYPES[dtype])


def reduced(arrays, dtype, op):
    """As NumPy computes it, in a type that holds everything; averages of integers truncate toward zero."""
    wide = numpy.stack(arrays).astype(numpy.float64)
    if dtype == "bool":
        wide = {"Sum": wide.max(0), "Max": wide.max(0), "Product": wide.min(0), "Min": wide.min(0)}[op]
        return wide.astype(numpy.bool_)
    result = {"Sum": wide.sum, "Average": wide.mean, "Min": wide.min, "Max": wide.max, "Product": wide.prod}[op](0)
    return (result if "float" in dtype else numpy.trunc(result)).astype(DTYPES[dtype])


def check(name, got, expected, framework):
    got = framework.to_numpy(got)
    assert got.shape == expected.shape, f"{name}: {got.shape}, not {expected.shape}"
    assert got.dtype == expected.dtype, f"{name}: {got.dtype}, not {expected.dtype}"
    if got.dtype.kind == "f" and "Average" in name:
        numpy.testing.assert_allclose(got, expected, rtol=1e-2 if "float16" in name else 1e-6, err_msg=name)
    else:
        numpy.testing.assert_array_equal(got, expected, err_msg=name)


def reductions(hvd, framework):
    rank, size = hvd.rank(), hvd.size()
    for seed, (dtype, op, shape) in enumerate(itertools.product(framework.crossed, OPS, SHAPES)):
        if dtype == "bool" and op == "Average":
            continue
        takes_any = op == "Average" and dtype in SHORT_INTEGERS
        arrays = [(any_values_of if takes_any else values_of)(each, shape, dtype, seed) for each in range(size)]
        expected = reduced(arrays, dtype, op)
        layout = LAYOUTS[seed % len(LAYOUTS)]
        name = f"{dtype} {op} {shape} {layout}"
        for _ in range(TURNS):
            tensor = framework.make(arrays[rank], dtype, layout)
            if layout == "in place":
                hvd.allreduce_(tensor, op=getattr(hvd, op), name=name)
                check(name, tensor, expected, framework)
            else:
                check(name, hvd.allreduce(tensor, op=getattr(hvd, op), name=name), expected, framework)
            if not shape:
                continue
            rows = [shape[0] // size + (each < shape[0] % size) for each in range(size)]
            first = sum(rows[:rank])
            part = hvd.reducescatter(framework.make(arrays[rank], dtype, layout), op=getattr(hvd, op), name=name)
            check(name, part, expected[first : first + rows[rank]], framework)


def movements(hvd, framework):
    rank, size = hvd.rank(), hvd.size()
    make = framework.make
    for seed, (dtype, shape) in enumerate(itertools.product(framework.crossed, SHAPES)):
        root, layout = seed % size, LAYOUTS[seed % 3]
        name = f"{dtype} {shape} {layout}"
        array = values_of(rank, shape, dtype, seed)
        for _ in range(TURNS):
            check(name, hvd.broadcast(make(array, dtype, layout), root, name=name), values_of(root, shape, dtype, seed), framework)
        if not shape:
            continue
        shapes = [((shape[0] * (each + seed)) % (2 * shape[0] + 1), *shape[1:]) for each in range(size)]
        arrays = [values_of(each, of_rank, dtype, seed) for each, of_rank in enumerate(shapes)]
        for _ in range(TURNS):
            gathered = hvd.allgather(make(arrays[rank], dtype, layout), name=name)
            check(name, gathered, numpy.concatenate(arrays), framework)
        splits = [[(sender + receiver + seed) % 4 for receiver in range(size)] for sender in range(size)]
        arrays = [values_of(each, (sum(splits[each]), *shape[1:]), dtype, seed) for each in range(size)]
        parts = [numpy.split(arrays[each], numpy.cumsum(splits[each])[:-1])[rank] for each in range(size)]
        for _ in range(TURNS):
            received, counts = hvd.alltoall(make(arrays[rank], dtype, layout), splits[rank], name=name)
            check(name, received, numpy.concatenate(parts), framework)
        assert counts.tolist() == [splits[each][rank] for each in range(size)], name


def groups(hvd, framework):
    """Lists of all dtypes at once, in every grouped form."""
    rank, size = hvd.rank(), hvd.size()
    for seed, op in enumerate(("Sum", "Min", "Max", "Product")):
        cases = [(dtype, SHAPES[(seed + i) % len(SHAPES)] or (1,)) for i, dtype in enumerate(framework.dtypes)]
        arrays = [[values_of(each, shape, dtype, seed) for dtype, shape in cases] for each in range(size)]
        tensors = [framework.make(array, dtype, "contiguous") for array, (dtype, _) in zip(arrays[rank], cases)]
        outputs = hvd.grouped_allreduce(tensors, op=getattr(hvd, op), name=op)
        gathered = hvd.synchronize(hvd.grouped_allgather_async(tensors, name=op))
        parts = hvd.grouped_reducescatter(tensors, op=getattr(hvd, op), name=op)
        for index, (dtype, shape) in enumerate(cases):
            of_ranks = [arrays[each][index] for each in range(size)]
            expected = reduced(of_ranks, dtype, op)
            rows = [shape[0] // size + (each < shape[0] % size) for each in range(size)]
            first = sum(rows[:rank])
            check(f"{dtype} {op}", outputs[index], expected, framework)
            check(f"{dtype} {op}", gathered[index], numpy.concatenate(of_ranks), framework)
            check(f"{dtype} {op}", parts[index], expected[first : first + rows[rank]], framework)


def averages_together(hvd, framework):
    """Averages of short integers in groups, and their sums: those that are scaled do not wrap, the others do."""
    rank, size = hvd.rank(), hvd.size()
    for dtype in (each for each in SHORT_INTEGERS if each in framework.dtypes):
        arrays = [[any_values_of(each, shape, dtype, seed) for seed, shape in enumerate(SHAPES[3:])] for each in range(size)]
        averages = [reduced([arrays[each][index] for each in range(size)], dtype, "Average") for index in range(len(SHAPES) - 3)]
        tensors = [framework.make(array, dtype, "contiguous") for array in arrays[rank]]
        for average, output in zip(averages, hvd.grouped_allreduce(tensors, op=hvd.Average, name=f"{dtype} group")):
            check(f"{dtype} group", output, average, framework)
        for index, array in enumerate(arrays[rank]):
            of_ranks = numpy.stack([arrays[each][index] for each in range(size)])
            output = hvd.allreduce(framework.make(array, dtype, "contiguous"), op=hvd.Sum, postscale_factor=0.125, name=f"{dtype} scaled {index}")
            scaled = numpy.trunc(of_ranks.sum(0, dtype=numpy.int64) * 0.125)
            check(f"{dtype} scaled", output, scaled.astype(DTYPES[dtype]), framework)
            output = hvd.allreduce(framework.make(array, dtype, "contiguous"), op=hvd.Sum, name=f"{dtype} sum {index}")
            check(f"{dtype} sum", output, of_ranks.sum(0, dtype=DTYPES[dtype]), framework)


def run(hvd, framework):
    """All of it, in a job that begins here. The number of ranks."""
    hvd.init()
    reductions(hvd, framework)
    movements(hvd, framework)
    groups(hvd, framework)
    averages_together(hvd, framework)
    return hvd.size()
