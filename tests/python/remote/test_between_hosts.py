"""Collectives between hosts, against NumPy: hierarchical and flat, over even and uneven hosts."""

import sys

import numpy  # noqa: F401  (the ranks need it)
import pytest
from remote_jobs import ROOT, run
from testbed import Testbed

VARIABLES = {"PYTHONPATH": f"{ROOT / 'python'}:{ROOT / 'tests/python'}", "OMP_NUM_THREADS": "1"}

# A rank: the C interface with NumPy arrays. Values are small whole numbers, so that no sum depends on its order.
RANK = """
import ctypes, hashlib, os
import numpy as np
import older_functions

lib = older_functions.library()
rank, size = int(os.environ["RUNJOB_RANK"]), int(os.environ["RUNJOB_SIZE"])
NUMBERS = {"uint8": 0, "int8": 1, "uint16": 2, "int16": 3, "int32": 4, "int64": 5, "float16": 6, "float32": 7, "float64": 8}
SUM, MIN, MAX = 1, 3, 4

def check(code):
    assert code == 0, lib.runjob_error_message().decode()

def extents(*numbers):
    return (ctypes.c_int64 * len(numbers))(*numbers), len(numbers)

def pointer(array):
    return array.ctypes.data_as(ctypes.c_void_p)

def values(dtype, count, of_rank):
    return np.random.default_rng(of_rank).integers(1, 5, count).astype(dtype)

def wait(handle):
    code = lib.runjob_wait(handle, -1)
    check(code)

def result(handle, dtype):
    wait(handle)
    data, shape, ndim = ctypes.c_void_p(), ctypes.POINTER(ctypes.c_int64)(), ctypes.c_int32()
    check(lib.runjob_output(handle, ctypes.byref(data), ctypes.byref(shape), ctypes.byref(ndim)))
    count = int(np.prod([shape[i] for i in range(ndim.value)]))
    copy = np.frombuffer(ctypes.string_at(data, count * np.dtype(dtype).itemsize), dtype=dtype)
    lib.runjob_release(handle)
    return copy

def allreduce(name, array, op):
    out, handle = np.empty_like(array), ctypes.c_int64()
    check(lib.runjob_allreduce_async(name.encode(), pointer(array), pointer(out), *extents(array.size), NUMBERS[str(array.dtype)], op,
                                     ctypes.c_double(1), ctypes.c_double(1), 0, ctypes.byref(handle)))
    wait(handle)
    lib.runjob_release(handle)
    return out

def main():
    for dtype in NUMBERS:
        for count in (1, 17, 5000, 70001):
            inputs = np.stack([values(dtype, count, r) for r in range(size)])
            for op, reduce in ((SUM, np.sum), (MIN, np.min), (MAX, np.max)):
                expected = reduce(inputs, axis=0).astype(dtype)
                got = allreduce(f"{dtype} {count} {op}", inputs[rank].copy(), op)
                assert np.array_equal(got, expected), ("allreduce", dtype, count, op)
    for count in (1, 3000, 90000):
        counts = [(r * 5 % 3) * count for r in range(size)]
        mine, handle = values("float32", counts[rank], rank), ctypes.c_int64()
        check(lib.runjob_allgather_async(b"gather%d" % count, pointer(mine), None, 0, *extents(mine.size), NUMBERS["float32"], 0, ctypes.byref(handle)))
        expected = np.concatenate([values("float32", counts[r], r) for r in range(size)])
        assert np.array_equal(result(handle, "float32"), expected), ("allgather", count)
        for root in (0, size - 1):
            data = values("int16", count, rank)
            check(lib.runjob_broadcast_async(b"bcast%d.%d" % (count, root), pointer(data), *extents(count), NUMBERS["int16"], root, 0, ctypes.byref(handle)))
            wait(handle)
            lib.runjob_release(handle)
            assert np.array_equal(data, values("int16", count, root)), ("broadcast", count, root)
        inputs = [values("float64", count * size + 1, r) for r in range(size)]
        check(lib.runjob_reducescatter_async(b"scatter%d" % count, pointer(inputs[rank]), None, 0, *extents(count * size + 1), NUMBERS["float64"], SUM,
                                             ctypes.c_double(1), ctypes.c_double(1), 0, ctypes.byref(handle)))
        rows = [count + (1 if r == 0 else 0) for r in range(size)]
        first = sum(rows[:rank])
        assert np.array_equal(result(handle, "float64"), sum(inputs)[first : first + rows[rank]]), ("reducescatter", count)
        splits = [[(f * 3 + t * 5) % 4 * count for t in range(size)] for f in range(size)]
        sent = [values("int32", sum(row), f) for f, row in enumerate(splits)]
        row = (ctypes.c_int64 * size)(*splits[rank])
        check(lib.runjob_alltoall_async(b"all%d" % count, pointer(sent[rank]), None, 0, *extents(sent[rank].size), row, size, NUMBERS["int32"], 0, ctypes.byref(handle)))
        expected = np.concatenate([sent[f][sum(splits[f][:rank]) : sum(splits[f][: rank + 1])] for f in range(size)])
        assert np.array_equal(result(handle, "int32"), expected), ("alltoall", count)

    thirds = np.arange(1, 50001, dtype=np.float32) / np.float32(3 + rank)
    print("digest", hashlib.sha256(allreduce("thirds", thirds, SUM).tobytes()).hexdigest(), flush=True)

check(lib.runjob_init())
main()
check(lib.runjob_shutdown())
"""


@pytest.fixture(scope="module")
def bed():
    with Testbed(hosts=4, visible=[sys.prefix]) as bed:
        yield bed


@pytest.mark.parametrize("hosts", ["s1:2,s2:2", "s1:2,s2:2,s3:2", "s1:2,s2:2,s3:2,s4:2", "s1:1,s2:3,s3:2", "s1,s2,s3,s4"])
def test_every_collective_against_numpy(bed, hosts):
    done = run(bed, "-H", hosts, sys.executable, "-c", RANK, variables=VARIABLES)
    assert (done.returncode, done.stderr) == (0, "")
    digests = {line.split()[-1] for line in done.stdout.splitlines() if "digest" in line}
    assert len(digests) == 1, "every rank has the same bits"


def test_ranks_of_a_host_take_turns_with_others(bed):
    done = run(bed, "-H", "s1:2,s2:2", "--map-by", "node", sys.executable, "-c", RANK, variables=VARIABLES)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("flat", [{"ALLREDUCE"}, {"ALLGATHER"}, {"ALLREDUCE", "ALLGATHER"}])
def test_flat_when_asked_for(bed, flat):
    variables = {**VARIABLES, **{f"HOROVOD_HIERARCHICAL_{name}": "0" for name in flat}}
    done = run(bed, "-H", "s1:2,s2:2", sys.executable, "-c", RANK, variables=variables)
    assert (done.returncode, done.stderr) == (0, "")
