"""One rank of a training with PyTorch, which takes its steps in turns with others.

    train_torch.py LIBRARY MODEL SOCKET        LIBRARY: runjob, horovod, ddp, alone, paced
"""

from __future__ import annotations

import importlib
import os
import sys
import time

import torch
from torch.nn.functional import cross_entropy
from torch_models import MODELS
from turn_taking import take_turns


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


def paced():
    """Each step waits for all ranks: what would be if only the bytes of the gradients cost nothing."""
    hvd = importlib.import_module("runjob.torch")
    hvd.init()

    def wrap(model, optimizer):
        optimizer.register_step_pre_hook(lambda *_: hvd.barrier())
        return model, optimizer

    return hvd.rank(), wrap


LIBRARIES = {
    "runjob": lambda: with_horovod("runjob.torch"),
    "before": lambda: with_horovod("runjob.torch"),
    "horovod": lambda: with_horovod("horovod.torch"),
    "ddp": with_ddp,
    "alone": alone,
    "paced": paced,
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


def main():
    library, model, path = sys.argv[1:]
    torch.set_num_threads(1)
    rank, wrap = LIBRARIES[library]()
    take_turns(path, rank, Training(model, wrap), f"PyTorch {torch.__version__}")


main()
