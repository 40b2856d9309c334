"""Steps of one training with PyTorch, by several libraries that differ only in the wrapper of the model or the optimizer.

This file imports nothing of the package: ranks of other libraries use it from where it lies.
"""

from __future__ import annotations

import importlib
import time
from typing import Any, Callable

import torch
from torch.nn.functional import cross_entropy

#: Wraps a model and its optimizer, so that each step averages the gradients of all ranks.
Wrap = Callable[[Any, Any], "tuple[Any, Any]"]


def with_horovod(module: str) -> tuple[int, Wrap]:
    """This process's rank, and what scripts for Horovod and for runjob do: `module` is horovod.torch or runjob.torch."""
    hvd = importlib.import_module(module)
    hvd.init()

    def wrap(model: Any, optimizer: Any) -> tuple[Any, Any]:
        hvd.broadcast_parameters(model.state_dict(), root_rank=0)
        return model, hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())

    return hvd.rank(), wrap


def with_ddp() -> tuple[int, Wrap]:
    """This process's rank, and DistributedDataParallel over Gloo."""
    import torch.distributed

    if not torch.distributed.is_initialized():
        torch.distributed.init_process_group("gloo")

    def wrap(model: Any, optimizer: Any) -> tuple[Any, Any]:
        return torch.nn.parallel.DistributedDataParallel(model), optimizer

    return torch.distributed.get_rank(), wrap


class Training:
    """A network of networks.MODELS in training: (network, data, samples of each rank in a step)."""

    def __init__(self, entry: tuple[Any, Any, int], wrap: Wrap) -> None:
        torch.manual_seed(1)
        network, data, self.batch = entry
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
        self.inputs, self.targets = data(self.batch)
        self.parameters = sum(parameter.numel() for parameter in model.parameters())
        self.model, self.optimizer = wrap(model, optimizer)

    def take(self, steps: int) -> list[float]:
        """Seconds of each step."""
        times = [time.perf_counter()]
        for _ in range(steps):
            self.optimizer.zero_grad()
            loss: Any = cross_entropy(self.model(self.inputs), self.targets)
            loss.backward()
            self.optimizer.step()
            times.append(time.perf_counter())
        return [later - earlier for earlier, later in zip(times, times[1:])]
