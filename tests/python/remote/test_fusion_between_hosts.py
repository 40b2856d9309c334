"""Many operations in flight between hosts: fused, in groups, compressed."""

import sys

import numpy  # noqa: F401  (the ranks need it)
import pytest
from remote_jobs import ROOT, run
from testbed import Testbed

VARIABLES = {"PYTHONPATH": f"{ROOT / 'python'}:{ROOT / 'tests/python'}", "OMP_NUM_THREADS": "1"}

# A rank: the C interface with NumPy arrays, submitted in an order of its own. Whole numbers are checked, thirds only compared.
RANK = """
import ctypes, hashlib, os, random
import numpy as np
import older_functions
from runjob import _library

lib = older_functions.library()
rank, size = int(os.environ["RUNJOB_RANK"]), int(os.environ["RUNJOB_SIZE"])
NUMBERS, SUM, MAX, FLOAT16 = {"int32": 4, "float32": 7, "float64": 8}, 1, 4, 1

def check(code):
    assert code == 0, lib.runjob_error_message().decode()

def pointer(array):
    return array.ctypes.data_as(ctypes.c_void_p)

def extents(array):
    return (ctypes.c_int64 * 1)(array.size)

def values(number, of_rank):
    dtype = ("int32", "float32", "float64")[number % 3]
    count = 400000 if number % 50 == 7 else number * 37 % 3000
    return (np.arange(count) % 100 + of_rank * (number % 5)).astype(dtype)

def start(number, array):
    handle = ctypes.c_int64()
    op = MAX if number % 4 == 0 else SUM
    check(lib.runjob_compressed_allreduce_async(
        b"t%d" % number, pointer(array), pointer(array), extents(array), 1, NUMBERS[str(array.dtype)], op, 1.0, 1.0,
        FLOAT16 if number % 6 == 1 else 0, 0, ctypes.byref(handle)))
    return handle

def finish(handle):
    code = lib.runjob_wait(handle, -1.0)
    lib.runjob_release(handle)
    check(code)

def group(tensors):
    shapes = [extents(a) for a in tensors]
    described = (_library.Tensor * len(tensors))(*[
        (pointer(a).value, pointer(a).value, 0, ctypes.addressof(shape), 1, NUMBERS[str(a.dtype)]) for a, shape in zip(tensors, shapes)])
    handle = ctypes.c_int64()
    check(lib.runjob_grouped_allreduce_async(b"group", described, len(tensors), SUM, 1.0, 1.0, 0, 0, ctypes.byref(handle)))
    return handle

def main():
    for turn in range(3):
        numbers = list(range(300))
        random.Random(rank * 10 + turn).shuffle(numbers)
        arrays = {number: values(number, rank) for number in numbers}
        members = [values(number, rank) for number in (1, 2, 4, 57)]
        handles = [start(number, arrays[number]) for number in numbers[:150]]
        handles.append(group(members))
        handles += [start(number, arrays[number]) for number in numbers[150:]]
        for handle in handles:
            finish(handle)
        for number, array in [*arrays.items(), *zip((1, 2, 4, 57), members)]:
            inputs = np.stack([values(number, r) for r in range(size)])
            is_max = number % 4 == 0 and array is arrays[number]
            expected = (inputs.max(axis=0) if is_max else inputs.sum(axis=0)).astype(array.dtype)
            assert np.array_equal(array, expected), (turn, number)
    digest = hashlib.sha256()
    thirds = [np.arange(1, 200 + i, dtype=np.float32) / np.float32(3 + rank) for i in range(100)]
    handles = [start(12 * i + (1 if i % 2 else 5), array) for i, array in enumerate(thirds)]
    for handle in handles:
        finish(handle)
    for array in thirds:
        digest.update(array.tobytes())
    print("digest", digest.hexdigest(), flush=True)
    if rank > 0:
        last = np.ones(5, np.float32)
        finish(start(1001, last))
        assert np.array_equal(last, np.full(5, size - 1)), last
    handle = ctypes.c_int64()
    check(lib.runjob_join(-1.0, ctypes.byref(handle)))
    lib.runjob_release(handle)

check(lib.runjob_init())
main()
check(lib.runjob_shutdown())
"""


@pytest.fixture(scope="module")
def bed():
    with Testbed(hosts=2, visible=[sys.prefix]) as bed:
        yield bed


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"HOROVOD_FUSION_THRESHOLD": "0"},
        {"HOROVOD_FUSION_THRESHOLD": "20000", "HOROVOD_DISABLE_GROUP_FUSION": "1"},
        {"HOROVOD_CYCLE_TIME": "20"},
        {"HOROVOD_HIERARCHICAL_ALLREDUCE": "0"},
        {"HOROVOD_HIERARCHICAL_ALLREDUCE": "0", "HOROVOD_HIERARCHICAL_ALLGATHER": "0"},
        {"HOROVOD_CPU_OPERATIONS": "gloo"},
        {"RUNJOB_SHARED_MEMORY": "0"},
    ],
)
def test_many_in_flight_are_right_and_alike_on_all_ranks(bed, settings):
    done = run(bed, "-H", "s1:2,s2:2", sys.executable, "-c", RANK, variables={**VARIABLES, **settings})
    assert (done.returncode, done.stderr) == (0, "")
    digests = [line.split()[-1] for line in done.stdout.splitlines() if "digest" in line]
    assert len(digests) == 4 and len(set(digests)) == 1, "every rank has the same bits"


def test_the_option_reaches_the_ranks(bed):
    code = "import os; print(os.environ['RUNJOB_FUSION_THRESHOLD'], os.environ['RUNJOB_CYCLE_TIME'])"
    done = run(bed, "--fusion-threshold-mb", "2", "--cycle-time-ms", "0.5", "-H", "s1,s2", "/usr/bin/python3", "-c", code)
    assert done.returncode == 0 and "no rank called init(), so --cycle-time-ms, --fusion-threshold-mb had no effect" in done.stderr
    assert [line.partition(":")[2] for line in done.stdout.splitlines()] == ["2097152 0.5"] * 2
