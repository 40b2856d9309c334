"""Checks and times one collective on the arrays of PyTorch or NumPy, as benchmarks/collectives/native/loop.cc does in C++.

The figures are rank 0's times of operations that follow each other without a barrier. No rank can run ahead: the roots of a broadcast
rotate, and every other operation needs the data of all ranks. So the sum of rank 0's times is the time that has passed.

`api`, one of libraries.py, has: arrays (the module torch or numpy), rank, size, library (name and version), run(op, slot),
start(op, slot), finish(op, slot, handle), run_future(op, slot), barrier() and of_rank_0(number). An operation that a library lacks raises
NotImplementedError on all ranks alike.

This file imports nothing of the package: ranks of other libraries use it from where it lies.
"""

from __future__ import annotations

import dataclasses
import time
from typing import Any

PERIOD = 7
DIVIDING = ("reducescatter", "alltoall")


@dataclasses.dataclass(frozen=True)
class Plan:
    """The operation to measure. One size is measured for `budget_ms`; at least `min_iterations` samples are taken."""

    op: str
    dtype: str = "float32"
    mode: str = "blocking"
    budget_ms: float = 100
    min_iterations: int = 5
    max_iterations: int = 10000


class Slot:
    """One operation that can be in flight beside the others."""

    def __init__(self, api: Any, plan: Plan, index: int, nbytes: int, shared_input: Any = None) -> None:
        size, dtype = api.size, getattr(api.arrays, plan.dtype)
        count = 0 if plan.op == "barrier" else max(1, nbytes // api.arrays.zeros(1, dtype=dtype).nbytes)
        if plan.op in DIVIDING:
            count = max(size, count // size * size)
        outputs = {"allgather": count * size, "reducescatter": count // size, "alltoall": count, "sendrecv": count}.get(plan.op, 0)
        self.name = f"{plan.op}.{nbytes}.{index}"
        self.root = index % size
        self.input = api.arrays.zeros(count, dtype=dtype) if shared_input is None else shared_input
        self.output = api.arrays.zeros(outputs, dtype=dtype)  # for an interface that has none of its own


def given(arrays: Any, count: int, rank: int) -> Any:
    """Returns the input of `rank`: small integers, which every dtype holds and sums exactly."""
    return arrays.arange(count) % PERIOD + rank + 1


def expected(api: Any, op: str, slot: Slot) -> Any:
    """The right result of an operation on rank `api.rank`, as integers."""
    arrays, count, size = api.arrays, len(slot.input), api.size
    block = count // size
    total = size * (arrays.arange(count) % PERIOD) + size * (size + 1) // 2
    mine = slice(api.rank * block, (api.rank + 1) * block)
    return {
        "allreduce": lambda: total,
        "broadcast": lambda: given(arrays, count, slot.root),
        "allgather": lambda: arrays.concatenate([given(arrays, count, sender) for sender in range(size)]),
        "reducescatter": lambda: total[mine],
        "alltoall": lambda: arrays.concatenate([given(arrays, count, sender)[mine] for sender in range(size)]),
        "sendrecv": lambda: given(arrays, count, (api.rank - 1) % size),
    }[op]()


def make_slots(api: Any, plan: Plan, nbytes: int, in_flight: int = 1) -> list[Slot]:
    """`in_flight` operations; of a blocking broadcast one from each root instead."""
    if plan.mode == "asynchronous":
        return [Slot(api, plan, index, nbytes) for index in range(in_flight)]
    first = Slot(api, plan, 0, nbytes)
    roots = api.size if plan.op == "broadcast" else 1
    return [first, *(Slot(api, plan, root, nbytes, first.input) for root in range(1, roots))]


def run_sample(api: Any, plan: Plan, slots: list[Slot]) -> list[Any]:
    """Their results, each of its slot."""
    if plan.mode == "blocking":
        return [api.run(plan.op, slot) for slot in slots]
    if plan.mode == "future":
        return [api.run_future(plan.op, slot) for slot in slots]
    started = [api.start(plan.op, slot) for slot in slots]
    return [api.finish(plan.op, slot, handle) for slot, handle in zip(slots, started)]


def timed_sample(api: Any, plan: Plan, slots: list[Slot]) -> float:
    """Microseconds of all slots together."""
    start = time.perf_counter()
    run_sample(api, plan, slots)
    return (time.perf_counter() - start) * 1e6


def check_results(api: Any, plan: Plan, slots: list[Slot]) -> None:
    """Errors  SystemExit, which names the operation and the rank with a wrong result; NotImplementedError."""
    groups = [slots] if plan.mode == "asynchronous" else [[slot] for slot in slots]
    for group in groups:
        for slot in group:
            slot.input[:] = given(api.arrays, len(slot.input), api.rank)
        results = run_sample(api, plan, group)
        for slot, result in zip(group, results):
            if plan.op != "barrier" and not bool((result == expected(api, plan.op, slot)).all()):
                raise SystemExit(f"wrong result of {slot.name} of {plan.dtype} on rank {api.rank}")


def next_batch(plan: Plan, done: int, elapsed_us: float) -> int:
    """How many samples to take next; 0 for the end. See native/loop.cc."""
    remaining_us = plan.budget_ms * 1000 - elapsed_us
    if remaining_us <= 0:
        return 0
    return int(min(remaining_us * done / max(elapsed_us, 0.01), 2 * done, plan.max_iterations - done))


def take_samples(api: Any, plan: Plan, slots: list[Slot]) -> list[float]:
    """The times of the samples within the plan's budget, which rank 0's clock measures for all ranks."""
    for _ in range(plan.min_iterations):
        run_sample(api, plan, slots)
    api.barrier()
    times: list[float] = []
    batch = plan.min_iterations
    while batch > 0:
        times += [timed_sample(api, plan, slots) for _ in range(batch)]
        batch = api.of_rank_0(next_batch(plan, len(times), sum(times)))
    return times


def measure_size(api: Any, plan: Plan, nbytes: int, in_flight: int = 1, checks: bool = True) -> tuple[int, list[float]]:
    """The number of operations in a sample, and the times of the samples; with `checks` after a check of the results."""
    slots = make_slots(api, plan, nbytes, in_flight)
    if checks:
        check_results(api, plan, slots)
    for slot in slots:
        slot.input[:] = 0
    return len(slots), take_samples(api, plan, slots)
