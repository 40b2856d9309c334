"""A rank is killed while an operation is in flight on the GPUs: the others get an error, their processes live, and init() works again.
`runjob -np 2 --grace-period 60 python killed_rank.py FOLDER COPIES`; COPIES hold the victim's GPU up."""

import os
import pathlib
import signal
import sys
import time

import numpy

import runjob.numpy as hvd
from arrays import Gpu, GpuArray, described, finish, submit
from runjob import job
from runjob._library import library


def add(gpu, name, array):
    handle = submit(gpu, name, "allreduce", [described(array, array, "float32")])
    try:
        job.wait(handle)
    finally:
        library().runjob_release(handle)


def main():
    mark, copies = pathlib.Path(sys.argv[1], "killed"), int(sys.argv[2])
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the launcher ends the rest of a failed job
    hvd.init()
    rank, gpu = hvd.rank(), Gpu(hvd.local_rank())
    array = GpuArray(gpu, numpy.ones(1 << 20, numpy.float32))
    add(gpu, "first", array)
    if rank == hvd.size() - 1:
        big = [GpuArray(gpu, numpy.zeros(1 << 24, numpy.float32)) for _ in range(2)]
        for _ in range(copies):
            gpu.call("cuMemcpyDtoDAsync_v2", big[0].address, big[1].address, big[0].nbytes, gpu.stream)
        finish(gpu, submit(gpu, "second", "allreduce", [described(array, array, "float32")]))
        mark.write_text(repr(time.time()))
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        add(gpu, "second", array)
    except hvd.HorovodInternalError as error:
        seconds = time.time() - float(mark.read_text())
        print(f"rank {rank}: error after {seconds:.3f} s: {error}", flush=True)
    else:
        raise AssertionError(f"rank {rank}: no error though a rank was killed")
    hvd.shutdown()
    for name in [name for name in os.environ if name.startswith(("RUNJOB_R", "RUNJOB_JOB", "HOROVOD_R"))]:
        del os.environ[name]  # the next job is this process alone
    hvd.init()
    fresh = GpuArray(gpu, numpy.full(1000, 2, numpy.float32))
    add(gpu, "alone", fresh)
    assert (fresh.values() == 2).all()
    print(f"rank {rank}: init() and an allreduce work again in {hvd.size()} rank", flush=True)
    hvd.shutdown()
    sys.stdout.flush()
    os._exit(0)  # CUDA's own exit handlers may wait for a kernel of the job that failed


if __name__ == "__main__":
    main()
