"""The rates that bound what a collective can reach on this machine: copies on the GPU, and to and from pinned memory."""

import statistics
import time
from ctypes import byref, c_void_p

import numpy

from arrays import Gpu, GpuArray

BYTES = 1 << 28
TURNS = 9


def gigabytes_per_second(gpu, copies, moved):
    """The median of some turns of `copies`, each of which moves `moved` bytes."""
    seconds = []
    for _ in range(TURNS + 1):
        start = time.perf_counter()
        copies()
        gpu.synchronize()
        seconds.append(time.perf_counter() - start)
    return moved / statistics.median(seconds[1:]) / 1e9


def main():
    gpu = Gpu(0)
    random = numpy.random.default_rng(0).integers(0, 255, BYTES, dtype=numpy.uint8)
    a, b = GpuArray(gpu, random), GpuArray(gpu, random)
    gpu.synchronize()
    pinned = c_void_p()
    gpu.call("cuMemHostAlloc", byref(pinned), BYTES, 0)

    def on_device():
        for _ in range(8):
            gpu.call("cuMemcpyDtoDAsync_v2", a.address, b.address, BYTES, gpu.stream)

    def out():
        gpu.call("cuMemcpyDtoHAsync_v2", pinned, a.address, BYTES, gpu.stream)

    def into():
        gpu.call("cuMemcpyHtoDAsync_v2", a.address, pinned, BYTES, gpu.stream)

    for name, copies, moved in (
        ("copy on the GPU, read and written", on_device, 16 * BYTES),
        ("copy out to pinned memory", out, BYTES),
        ("copy in from pinned memory", into, BYTES),
    ):
        print(f"FIGURE\t{name}\t{gigabytes_per_second(gpu, copies, moved):.1f}\tGB/s", flush=True)
    gpu.call("cuMemFreeHost", pinned)


if __name__ == "__main__":
    main()
