"""Every collective on a GPU, for every dtype, against NumPy. A rank of a job: `runjob -np 2 python collectives.py`."""

import ctypes
import sys
from ctypes import c_int64

import numpy

import runjob.numpy as hvd
from arrays import Gpu, GpuArray, described, finish, result_of, submit
from runjob._library import library
from runjob.exceptions import Code, Error

DTYPES = ["uint8", "int8", "uint16", "int16", "int32", "int64", "float16", "float32", "float64", "bool", "bfloat16"]
OPS = {"average": 0, "sum": 1, "min": 3, "max": 4, "product": 5}

checked = 0
is_staged = None  # whether tensors go through the host, where every reduction is possible


def nccl_can(dtype, op):
    """True if NCCL's operators can express the reduction."""
    return dtype not in ("uint16", "int16") and (op != "average" or "int" not in dtype)


def stored(values, dtype):
    """`values`, which are whole numbers, as NumPy keeps them for `dtype`: bfloat16 as the upper half of float32."""
    if dtype == "bfloat16":
        return (values.astype(numpy.float32).view(numpy.uint32) >> 16).astype(numpy.uint16)
    return values.astype(dtype)


def check(what, found, expected, dtype):
    global checked
    expected = stored(expected, dtype)
    if found.shape != expected.shape or not numpy.array_equal(found, expected):
        wrong = numpy.flatnonzero(found != expected)[:4] if found.shape == expected.shape else found.shape
        raise AssertionError(f"rank {hvd.rank()}: {what} of {dtype}: {found.ravel()[:4]} and not {expected.ravel()[:4]}, at {wrong}")
    checked += 1


def inputs(count, dtype, size, columns=()):
    """The ranks' inputs: multiples of `size` up to 4 * size, so that averages are whole numbers."""
    total = count * int(numpy.prod(columns, initial=1))
    rows = [(numpy.arange(total) * (rank + 1) + rank) % 4 + 1 for rank in range(size)]
    if dtype == "bool":
        return [(row % 2).reshape(count, *columns) for row in rows]
    return [(row * size).reshape(count, *columns) for row in rows]


def reduced(ranks, op, dtype):
    if dtype == "bool":
        return numpy.any(ranks, axis=0) if op in ("sum", "max") else numpy.all(ranks, axis=0)
    reductions = {"sum": numpy.sum, "average": numpy.sum, "min": numpy.min, "max": numpy.max, "product": numpy.prod}
    whole = reductions[op](numpy.array(ranks, dtype=numpy.int64), axis=0)
    return whole // len(ranks) if op == "average" else whole


def run(gpu, name, kind, given, room, dtype, **fields):
    handle = submit(gpu, name, kind, [described(given, room, dtype)], **fields)
    finish(gpu, handle)
    found = room.values() if room is not None else result_of(gpu, handle, given.dtype)
    library().runjob_release(handle)
    return found


def check_refusal(gpu, dtype, op, given):
    """Submits a reduction that NCCL cannot express. All such are refused, or none. Returns whether it was."""
    global checked, is_staged
    try:
        run(gpu, "refused", "allreduce", given, given, dtype, op=op)
    except Error as error:
        assert error.code == Code.UNAVAILABLE and "NCCL" in str(error), error
        is_refused = True
    else:
        is_refused = False
    assert is_staged in (None, not is_refused), f"{op} of {dtype}: refused is {is_refused}"
    is_staged = not is_refused
    checked += 1
    return is_refused


def reductions(gpu, rank, size, dtype, count):
    for op, number in OPS.items():
        if dtype == "bool" and op == "average":
            continue
        if not nccl_can(dtype, op):
            other = GpuArray(gpu, stored(inputs(count, dtype, size)[rank], dtype))
            is_refused = check_refusal(gpu, dtype, number, other)
            other.free()
            if is_refused:
                continue
        ranks = inputs(count, dtype, size)
        if op == "product" and dtype != "bool":
            ranks = [each % 2 + 1 for each in ranks]  # so that 16 bits have the exact result
        given = GpuArray(gpu, stored(ranks[rank], dtype))
        room = GpuArray(gpu, numpy.empty_like(stored(ranks[rank], dtype)), is_filled=False)
        check(f"allreduce {op}", run(gpu, "allreduce", "allreduce", given, room, dtype, op=number), reduced(ranks, op, dtype), dtype)
        check(f"allreduce {op} in place", run(gpu, "in place", "allreduce", given, given, dtype, op=number),
              reduced(ranks, op, dtype), dtype)  # fmt: skip
        given.free()
        room.free()
    if dtype in ("float16", "float32", "float64", "bfloat16"):
        ranks = inputs(count, dtype, size)
        doubled = [2 * each for each in ranks]
        for name in ("prescale", "postscale"):
            given = GpuArray(gpu, stored(doubled[rank], dtype))
            check(name, run(gpu, name, "allreduce", given, given, dtype, **{name: 0.5}), reduced(ranks, "sum", dtype), dtype)
            given.free()


def movements(gpu, rank, size, dtype, count):
    ranks = inputs(count, dtype, size, (3,))
    given = GpuArray(gpu, stored(ranks[rank], dtype))
    check("broadcast", run(gpu, "broadcast", "broadcast", given, given, dtype, root=size - 1), ranks[size - 1], dtype)
    given.free()
    given = GpuArray(gpu, stored(ranks[rank], dtype))
    room = GpuArray(gpu, numpy.empty((size * count, 3), given.dtype), is_filled=False)
    check("allgather", run(gpu, "allgather", "allgather", given, room, dtype), numpy.concatenate(ranks), dtype)
    own = GpuArray(gpu, stored(ranks[rank][: rank + 1], dtype))
    expected = numpy.concatenate([each[: index + 1] for index, each in enumerate(ranks)])
    check("allgather of unequal parts", run(gpu, "unequal", "allgather", own, None, dtype), expected, dtype)
    splits = [1] * (size - 1) + [count - size + 1]
    lent = (c_int64 * size)(*splits)
    first = sum(splits[:rank])
    expected = numpy.concatenate([each[first : first + splits[rank]] for each in ranks])
    check("alltoall", run(gpu, "alltoall", "alltoall", given, None, dtype, splits=ctypes.addressof(lent), nsplits=size), expected, dtype)
    for op in ("sum", "max"):
        if not nccl_can(dtype, op) and not is_staged:
            continue
        whole = reduced(ranks, op, dtype)
        rows = [count // size + (index < count % size) for index in range(size)]
        part = whole[sum(rows[:rank]) : sum(rows[: rank + 1])]
        scattered = GpuArray(gpu, numpy.empty(part.shape, given.dtype), is_filled=False)
        check(f"reducescatter {op}", run(gpu, "scatter", "reducescatter", given, scattered, dtype, op=OPS[op]), part, dtype)
        scattered.free()
    for each in (given, room, own):
        each.free()


def groups(gpu, rank, size):
    dtypes, counts = ["float32", "float64", "int32"], [5, 1, 1000]
    ranks = [inputs(count, dtype, size) for count, dtype in zip(counts, dtypes)]
    arrays = [GpuArray(gpu, stored(each[rank], dtype)) for each, dtype in zip(ranks, dtypes)]
    tensors = [described(array, array, dtype) for array, dtype in zip(arrays, dtypes)]
    handle = submit(gpu, "group", "allreduce", tensors, is_group=1)
    finish(gpu, handle)
    for array, each, dtype in zip(arrays, ranks, dtypes):
        check("a group's allreduce", array.values(), reduced(each, "sum", dtype), dtype)
        array.free()
    library().runjob_release(handle)
    nothing = GpuArray(gpu, numpy.empty(0, numpy.float32))
    check("nothing", run(gpu, "nothing", "allreduce", nothing, nothing, "float32"), numpy.empty(0), "float32")


def main():
    counts = [int(word) for word in sys.argv[1:]] or [7, 1001]
    hvd.init()
    rank, size = hvd.rank(), hvd.size()
    gpu = Gpu(hvd.local_rank())
    for turn in range(2):  # the second one is planned
        for count in counts:
            for dtype in DTYPES:
                reductions(gpu, rank, size, dtype, count)
                movements(gpu, rank, size, dtype, count)
        groups(gpu, rank, size)
        print(f"turn {turn}: rank {rank} on {gpu.name} has checked {checked} results", flush=True)
    hvd.shutdown()


if __name__ == "__main__":
    main()
