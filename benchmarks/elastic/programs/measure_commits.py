"""One rank's costs of a commit and of a check, as JSON on rank 0's output: measure_commits.py MIB TURNS."""

import ctypes
import json
import resource
import statistics
import sys
import time
import tracemalloc

import numpy as np
import torch

import runjob.elastic
import runjob.torch as hvd

MIB, TURNS = int(sys.argv[1]), int(sys.argv[2])
CHECKS = 2000


def seconds(function):
    began = time.perf_counter()
    function()
    return time.perf_counter() - began


def median_us(function):
    for _ in range(CHECKS // 10):
        function()
    return statistics.median(seconds(function) for _ in range(CHECKS)) * 1e6


torch.set_num_threads(1)
hvd.init()
count = (MIB << 20) // 4
values = np.ones(count, np.float32)
model = torch.nn.Linear(1, 1)
model.weight = torch.nn.Parameter(torch.ones(count))
target = np.zeros(count, np.float32)


def memcpy():
    ctypes.memmove(target.ctypes.data, values.ctypes.data, values.nbytes)


states = {"NumPy": runjob.elastic.ObjectState(values=values, step=0), "PyTorch": hvd.elastic.TorchState(model=model, step=0)}


@hvd.elastic.run
def measure(_):
    ways = {"memcpy": memcpy, **{name: state.save for name, state in states.items()}}
    for function in ways.values():
        function()  # the first one makes room
    # A turn's new memory: bytes of Python's allocator, and pages that the kernel has given.
    taken = {}
    tracemalloc.start()
    for name, function in ways.items():
        tracemalloc.reset_peak()
        before, faults = tracemalloc.get_traced_memory()[0], resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        function()
        taken[name] = {
            "bytes": tracemalloc.get_traced_memory()[1] - before,
            "pages": resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults,
        }
    tracemalloc.stop()
    times = {name: [] for name in ways}
    for turn in range(TURNS):
        names = list(ways)[turn % 3 :] + list(ways)[: turn % 3]
        for name in names:
            hvd.barrier()  # all ranks copy at the same time, as in training
            times[name].append(seconds(ways[name]))
    byte = torch.zeros(1, dtype=torch.uint8)
    checks = median_us(states["NumPy"].check_host_updates), median_us(lambda: hvd.allreduce_(byte, op=hvd.Max, name="byte"))
    if hvd.rank() == 0:
        print(json.dumps({"times": times, "taken": taken, "check_us": checks[0], "allreduce_us": checks[1]}), flush=True)


measure(states["NumPy"])
