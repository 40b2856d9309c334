"""One rank of a training: takes as many steps as it is told, as often as it is told, and says how long they took.

    train.py LIBRARY MODEL SOCKET        LIBRARY: runjob, horovod, ddp, alone

It talks to the benchmark through the Unix socket: a line with a number of steps comes in, a line of JSON goes out.
"""

from __future__ import annotations

import importlib
import json
import os
import pathlib
import socket
import sys
import time

import torch
from models import MODELS
from torch.nn.functional import cross_entropy

WARM_UP_STEPS = 3


def with_horovod(module):
    """What a script for Horovod does, and one for runjob."""
    hvd = importlib.import_module(module)
    hvd.init()

    def wrap(model, optimizer):
        hvd.broadcast_parameters(model.state_dict(), root_rank=0)
        return model, hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())

    return hvd.rank(), wrap


def with_ddp():
    import torch.distributed

    torch.distributed.init_process_group("gloo")

    def wrap(model, optimizer):
        return torch.nn.parallel.DistributedDataParallel(model), optimizer

    return torch.distributed.get_rank(), wrap


def alone():
    """Without any communication: what would be if it cost nothing."""
    return int(os.environ.get("RUNJOB_RANK", "0")), lambda model, optimizer: (model, optimizer)


LIBRARIES = {
    "runjob": lambda: with_horovod("runjob.torch"),
    "horovod": lambda: with_horovod("horovod.torch"),
    "ddp": with_ddp,
    "alone": alone,
}


class Training:
    def __init__(self, name, wrap):
        torch.manual_seed(1)
        network, data, self.batch = MODELS[name]
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
        self.inputs, self.targets = data(self.batch)
        self.parameters = sum(parameter.numel() for parameter in model.parameters())
        self.model, self.optimizer = wrap(model, optimizer)

    def take(self, steps):
        """Seconds of each step."""
        times = [time.perf_counter()]
        for _ in range(steps):
            self.optimizer.zero_grad()
            cross_entropy(self.model(self.inputs), self.targets).backward()
            self.optimizer.step()
            times.append(time.perf_counter())
        return [later - earlier for earlier, later in zip(times, times[1:])]


def memory():
    """Kilobytes: the most that was resident, and the share of what is resident now."""
    found = {}
    for path, key in (("/proc/self/status", "VmHWM"), ("/proc/self/smaps_rollup", "Pss")):
        lines = pathlib.Path(path).read_text(encoding="ascii").splitlines()
        found[key] = next(int(line.split()[1]) for line in lines if line.startswith(f"{key}:"))
    return found


def main():
    library, model, path = sys.argv[1:]
    torch.set_num_threads(1)
    rank, wrap = LIBRARIES[library]()
    training = Training(model, wrap)
    training.take(WARM_UP_STEPS)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        stream = connection.makefile("rw", encoding="ascii")

        def say(**values):
            stream.write(json.dumps(values) + "\n")
            stream.flush()

        facts = {"batch": training.batch, "parameters": training.parameters, "torch": torch.__version__}
        say(rank=rank, pid=os.getpid(), **facts, **memory())
        for line in stream:
            say(seconds=training.take(int(line)), **memory())


main()
