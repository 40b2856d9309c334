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


def with_ddp(backend: str = "gloo") -> tuple[int, Wrap]:
    """This process's rank, and DistributedDataParallel over gloo or runjob."""
    group = _group(backend)

    def wrap(model: Any, optimizer: Any) -> tuple[Any, Any]:
        return torch.nn.parallel.DistributedDataParallel(model, process_group=group), optimizer

    return group.rank(), wrap


def with_fsdp(backend: str) -> tuple[int, Wrap]:
    """This process's rank, and FSDP2: each layer that has parameters is divided among the ranks, and so is what remains."""
    group = _group(backend)
    fsdp = importlib.import_module("torch.distributed.fsdp")
    mesh = importlib.import_module("torch.distributed.device_mesh")

    def wrap(model: Any, optimizer: Any) -> tuple[Any, Any]:
        ranks = mesh.DeviceMesh.from_group(group, "cpu")
        for layer in model.children():
            if any(True for _ in layer.parameters()):
                fsdp.fully_shard(layer, mesh=ranks)
        fsdp.fully_shard(model, mesh=ranks)
        return model, torch.optim.SGD(model.parameters(), lr=optimizer.param_groups[0]["lr"])

    return group.rank(), wrap


def _group(backend: str) -> Any:
    """torch.distributed's default group, which is made if there is none; if that has another backend, a group of all ranks."""
    import torch.distributed

    if backend == "runjob":
        importlib.import_module("runjob.torch.distributed")  # registers it, also where the package is not installed
    if not torch.distributed.is_initialized():
        torch.distributed.init_process_group(backend)
    world = torch.distributed.group.WORLD
    return world if torch.distributed.get_backend(world) == backend else torch.distributed.new_group(backend=backend)


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
