"""Checks and times one collective on torch tensors: native/loop.cc in Python. Prints what rank 0 measured, as lines of JSON.

Why rank 0's times, and why the roots of a broadcast rotate, is said in native/loop.hpp.
"""

import argparse
import gc
import json
import time

import torch

PERIOD = 7
IN_PLACE = ("allreduce", "broadcast")
DIVIDING = ("reducescatter", "alltoall")


class Unavailable(Exception):
    """The library does not have the operation, or not for this dtype. Raised on all ranks alike."""


class Slot:
    """One operation that can be in flight beside the others."""

    def __init__(self, arguments, index, nbytes, size, shared_input=None):
        dtype = getattr(torch, arguments.op_dtype)
        count = 0 if arguments.op == "barrier" else max(1, nbytes // dtype.itemsize)
        if arguments.op in DIVIDING:
            count = max(size, count // size * size)
        outputs = {"allgather": count * size, "reducescatter": count // size, "alltoall": count}.get(arguments.op, 0)
        self.name = f"{arguments.op}.{nbytes}.{index}"
        self.root = index % size
        self.input = torch.zeros(count, dtype=dtype) if shared_input is None else shared_input
        self.output = torch.zeros(outputs, dtype=dtype)  # for an interface that has none of its own


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--op", required=True)
    parser.add_argument("--dtype", dest="op_dtype", required=True)
    parser.add_argument("--mode", choices=("blocking", "asynchronous"), required=True)
    parser.add_argument("--bytes", type=numbers, required=True)
    parser.add_argument("--in-flight", type=numbers)
    parser.add_argument("--budget-ms", type=int, default=100)
    parser.add_argument("--min-iterations", type=int, default=5)
    parser.add_argument("--max-iterations", type=int, default=10000)
    parser.add_argument("--module", help="the module with Horovod's interface")
    return parser.parse_args()


def numbers(text):
    return [int(word) for word in text.split(",")]


def given(count, rank, dtype):
    """What `rank` gives: small integers, which every dtype holds and sums exactly."""
    return (torch.arange(count) % PERIOD + rank + 1).to(dtype)


def expected(op, slot, rank, size):
    count, dtype = slot.input.numel(), slot.input.dtype
    block = count // size
    total = (size * (torch.arange(count) % PERIOD) + size * (size + 1) // 2).to(dtype)
    mine = slice(rank * block, (rank + 1) * block)
    return {
        "allreduce": lambda: total,
        "broadcast": lambda: given(count, slot.root, dtype),
        "allgather": lambda: given(count, 0, dtype).repeat(size)
        + torch.arange(size).repeat_interleave(count).to(dtype),
        "reducescatter": lambda: total[mine],
        "alltoall": lambda: torch.cat([given(count, sender, dtype)[mine] for sender in range(size)]),
    }[op]()


def make_slots(arguments, nbytes, in_flight, size):
    if arguments.mode == "asynchronous":
        return [Slot(arguments, index, nbytes, size) for index in range(in_flight)]
    first = Slot(arguments, 0, nbytes, size)
    roots = size if arguments.op == "broadcast" else 1
    return [first, *(Slot(arguments, root, nbytes, size, first.input) for root in range(1, roots))]


def run_sample(api, arguments, slots):
    """Their results, each of its slot."""
    if arguments.mode == "blocking":
        return [api.run(arguments.op, slot) for slot in slots]
    started = [api.start(arguments.op, slot) for slot in slots]
    return [api.finish(arguments.op, slot, handle) for slot, handle in zip(slots, started)]


def timed_sample(api, arguments, slots):
    start = time.perf_counter()
    run_sample(api, arguments, slots)
    return (time.perf_counter() - start) * 1e6


def check_results(api, arguments, slots):
    groups = [[slot] for slot in slots] if arguments.mode == "blocking" else [slots]
    for group in groups:
        for slot in group:
            slot.input.copy_(given(slot.input.numel(), api.rank, slot.input.dtype))
        results = run_sample(api, arguments, group)
        for slot, result in zip(group, results):
            if arguments.op != "barrier" and not torch.equal(result, expected(arguments.op, slot, api.rank, api.size)):
                raise SystemExit(f"wrong result of {slot.name} of {arguments.op_dtype} on rank {api.rank}")


def next_batch(arguments, done, elapsed_us):
    """How many samples to take next; 0 for the end. See native/loop.cc."""
    remaining_us = arguments.budget_ms * 1000 - elapsed_us
    if remaining_us <= 0:
        return 0
    return int(min(remaining_us * done / max(elapsed_us, 0.01), 2 * done, arguments.max_iterations - done))


def take_samples(api, arguments, slots):
    for _ in range(arguments.min_iterations):
        run_sample(api, arguments, slots)
    api.barrier()
    times, batch = [], arguments.min_iterations
    while batch > 0:
        times += [timed_sample(api, arguments, slots) for _ in range(batch)]
        batch = api.of_rank_0(next_batch(arguments, len(times), sum(times)))
    return times


def measure_size(api, arguments, nbytes, in_flight):
    slots = make_slots(arguments, nbytes, in_flight, api.size)
    check_results(api, arguments, slots)
    for slot in slots:
        slot.input.zero_()
    times = take_samples(api, arguments, slots)
    return {"bytes": nbytes, "operations": len(slots), "times_us": [round(value, 3) for value in times]}


def measure(api, arguments):
    """`api` has rank, size, library, run(op, slot), start(op, slot), finish(op, slot, handle), barrier(), of_rank_0(number)."""
    torch.set_num_threads(1)
    gc.disable()
    lines = [{"library": api.library}]
    for nbytes, in_flight in zip(arguments.bytes, arguments.in_flight or [1] * len(arguments.bytes)):
        try:
            lines.append(measure_size(api, arguments, nbytes, in_flight))
        except Unavailable as reason:
            lines.append({"bytes": nbytes, "skipped": str(reason)})
        gc.collect()
    if api.rank == 0:
        print("\n".join(json.dumps(line) for line in lines), flush=True)
