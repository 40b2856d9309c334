"""Which share of the allreduces of a training step is hidden behind its backward pass.

    runjob -H s1:1,s2:1 python benchmarks/hidden_share.py [--model mlp] [--bucket-mib 4,16] [--steps 10] [--turns 3]

"Allreduces" is the time in which at least one of them moved data, from the timeline of rank 0; "waits" is the time for which
backward() waits for them at its end. What it does not wait for is hidden: 1 - waits / allreduces. A wait for a rank that computes for longer
counts as a wait. "alone" is the step of the same network without communication, in the same turns. Times are medians of the
turns, in milliseconds for one step, on rank 0.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import statistics
import tempfile
import time
from typing import NamedTuple

import torch
from torch.nn.functional import cross_entropy

import runjob.torch as hvd
from runjob import timeline
from runjob.benchmark.networks import MODELS


SETTLING_STEPS = 3  # the buckets are divided in the first one


class Turn(NamedTuple):
    """Milliseconds for each step."""

    step: float
    backward: float
    waits: float
    allreduces: float


def time_waits(optimizer):
    """A list to which each backward pass of a distributed optimizer adds how many seconds it has waited."""
    waits = []
    gradients = getattr(optimizer, "_gradients", None)
    if gradients is not None:
        end_round = type(gradients).end_round

        def timed():
            begin = time.perf_counter()
            end_round(gradients)
            waits.append(time.perf_counter() - begin)

        gradients.end_round = timed
    return waits


def train(network, batch, optimizer, steps):
    """Seconds of all steps: (whole, backward, waits)."""
    inputs, targets = batch
    whole = backward = 0.0
    waits = time_waits(optimizer)
    for _ in range(steps):
        begin = time.perf_counter()
        optimizer.zero_grad()
        loss = cross_entropy(network(inputs), targets)
        before = time.perf_counter()
        loss.backward()
        after = time.perf_counter()
        optimizer.step()
        backward += after - before
        whole += time.perf_counter() - begin
    return whole, backward - sum(waits), sum(waits)


def moving_milliseconds(path):
    return timeline.milliseconds(each.data for each in timeline.operations(json.loads(path.read_text(encoding="utf-8"))))


def take_turn(network, batch, optimizer, steps, folder):
    train(network, batch, optimizer, SETTLING_STEPS)
    hvd.barrier()
    path = pathlib.Path(folder) / "trace.json"
    if hvd.rank() == 0:
        hvd.start_timeline(str(path))
    whole, backward, waits = train(network, batch, optimizer, steps)
    if hvd.rank() == 0:
        hvd.stop_timeline()
    moving = moving_milliseconds(path) if hvd.rank() == 0 and hasattr(optimizer, "synchronize") else 0.0
    return Turn(whole * 1e3 / steps, backward * 1e3 / steps, waits * 1e3 / steps, moving / steps)


def prepare(name, bucket_mib):
    """(network, optimizer); without communication for None."""
    torch.manual_seed(1)
    network = MODELS[name][0]()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.001)
    if bucket_mib is None:
        return network, optimizer
    distributed = hvd.DistributedOptimizer(optimizer, named_parameters=network.named_parameters())
    distributed._gradients.bucket_bytes = int(bucket_mib * (1 << 20))
    batch = MODELS[name][1](MODELS[name][2])
    train(network, batch, distributed, SETTLING_STEPS)  # divides the buckets, with this size
    return network, distributed


def median(turns):
    return Turn(*(statistics.median(values) for values in zip(*turns)))


def line(label, turn, alone):
    hidden = f"{max(0.0, 1 - turn.waits / turn.allreduces):>9.0%}" if turn.allreduces else f"{'':>9}"
    return f"{label:>12} {turn.step:>9.1f} {turn.backward:>9.1f} {turn.allreduces:>11.1f} {turn.waits:>9.1f} {hidden} {alone.step / turn.step:>13.2f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="mlp", choices=list(MODELS))
    parser.add_argument("--bucket-mib", default="16", help="sizes of buckets, separated by commas (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=10, help="of a turn (default: %(default)s)")
    parser.add_argument("--turns", type=int, default=3, help="of each size, in alternation (default: %(default)s)")
    arguments = parser.parse_args()
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    hvd.init()
    sizes = [float(word) for word in arguments.bucket_mib.split(",")]
    batch = MODELS[arguments.model][1](MODELS[arguments.model][2])
    cases = {size: prepare(arguments.model, size) for size in [None, *sizes]}
    turns = {size: [] for size in cases}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(arguments.turns):
            for size, (network, optimizer) in cases.items():
                turns[size].append(take_turn(network, batch, optimizer, arguments.steps, folder))
    if hvd.rank() == 0:
        alone = median(turns[None])
        print(f"{arguments.model}, {hvd.size()} ranks, milliseconds for a step")
        print(f"{'buckets':>12} {'step':>9} {'backward':>9} {'allreduces':>11} {'waits':>9} {'hidden':>9} {'alone / step':>13}")
        for size, of_size in turns.items():
            print(line("alone" if size is None else f"{size:g} MiB", median(of_size), alone))
    hvd.shutdown()


if __name__ == "__main__":
    main()
