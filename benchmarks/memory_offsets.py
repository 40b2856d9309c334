"""Blocking operations on NumPy arrays that begin at several places of their pages, taking turns.

    runjob -np 2 python benchmarks/memory_offsets.py

Where memory lies should make no difference, but some processors copy slowly when the target begins a few bytes after the source in their
pages. NumPy's large arrays begin 16 bytes after a page does, PyTorch's tensors 64. Rank 0 prints the median of each in microseconds, of the
slowest rank, and the ratio of the slowest place to the fastest one. RUNJOB_LIBRARY names the librunjob of another build.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import numpy

import runjob.numpy as hvd

PAGE = 4096
OPERATIONS: dict[str, Callable[[numpy.ndarray, str], object]] = {
    "allreduce": lambda array, name: hvd.allreduce_(array, op=hvd.Sum, name=name),
    "allgather": lambda array, name: hvd.allgather(array, name=name),
    "broadcast": lambda array, name: hvd.broadcast_(array, 0, name=name),
    "alltoall": lambda array, name: hvd.alltoall(array, name=name),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bytes", type=int, nargs="+", default=[1 << 16, 1 << 20, 1 << 23], help="of an array")
    parser.add_argument("--offsets", type=int, nargs="+", default=[0, 16, 32, 64, 4080], help="in the page, of the first byte")
    parser.add_argument("--turns", type=int, default=7, help="of each place")
    arguments = parser.parse_args()
    hvd.init()
    if hvd.rank() == 0:
        print(f"{hvd.size()} ranks, float32\n{'':20s}" + "".join(f"{offset:9d}" for offset in arguments.offsets) + "    ratio")
    for name, operation in OPERATIONS.items():
        for nbytes in arguments.bytes:
            medians = _medians(name, operation, nbytes, arguments)
            if hvd.rank() == 0:
                columns = "".join(f"{1e6 * median:9.0f}" for median in medians)
                print(f"{name:10s}{nbytes:10d}{columns}{max(medians) / min(medians):9.2f}", flush=True)


def _medians(name: str, operation: Callable[[numpy.ndarray, str], object], nbytes: int, arguments: argparse.Namespace) -> list[float]:
    memory = numpy.zeros(nbytes + 2 * PAGE, numpy.uint8)
    first = -memory.ctypes.data % PAGE
    arrays = [memory[first + offset : first + offset + nbytes].view(numpy.float32) for offset in arguments.offsets]
    calls = max(3, min(300, (32 << 20) // nbytes))
    times: list[list[float]] = [[] for _ in arrays]
    for turn in range(-1, arguments.turns):  # the first one does not count
        for place, array in enumerate(arrays):
            seconds = _of_slowest(lambda array=array: operation(array, f"{name}.{nbytes}"), calls)
            if turn >= 0:
                times[place].append(seconds / calls)
    return [statistics.median(values) for values in times]


def _of_slowest(work: Callable[[], object], calls: int) -> float:
    hvd.barrier()
    start = time.perf_counter()
    for _ in range(calls):  # results are not kept: the next one takes their memory
        work()
    return float(hvd.allreduce(time.perf_counter() - start, op=hvd.Max))


if __name__ == "__main__":
    main()
