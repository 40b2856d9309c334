"""The collectives on tensors of any device. A tensor of a GPU is reduced on the GPU if the library can do so. Tensors
of all other devices except the CPU are staged.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from ..arrays import Arrays
from ..calls import Reduction
from ..handles import Call
from ..process_sets import ProcessSet
from . import gpus
from .gpu_calls import GpuCalls, GpuGroups
from .staging import StagedCalls, StagedGroups


def _are_on_one_gpu(*tensors: Any) -> bool:
    """True if all of them are dense and on one GPU that the library can use."""
    if not all(gpus.is_on_gpu(tensor) and tensor.layout is torch.strided for tensor in tensors):
        return False
    return len({tensor.device for tensor in tensors}) == 1 and not gpus.objection()


class PlacedCalls(StagedCalls):
    def __init__(self, arrays: Arrays[torch.Tensor]) -> None:
        super().__init__(arrays)
        self.on_gpu = GpuCalls(arrays)

    def allreduce(self, tensor: Any, name: str | None, reduction: Reduction, in_place: bool = False) -> Call:
        if _are_on_one_gpu(tensor):
            return self.on_gpu.allreduce(tensor, name, reduction, in_place)
        return super().allreduce(tensor, name, reduction, in_place)

    def allgather(self, tensor: Any, name: str | None, process_set: ProcessSet) -> Call:
        if _are_on_one_gpu(tensor):
            return self.on_gpu.allgather(tensor, name, process_set)
        return super().allgather(tensor, name, process_set)

    def broadcast(
        self, tensor: Any, root_rank: int, name: str | None, process_set: ProcessSet, in_place: bool = False
    ) -> Call:
        if _are_on_one_gpu(tensor):
            return self.on_gpu.broadcast(tensor, root_rank, name, process_set, in_place)
        return super().broadcast(tensor, root_rank, name, process_set, in_place)

    def alltoall(self, tensor: Any, splits: Any, name: str | None, process_set: ProcessSet) -> Call:
        if _are_on_one_gpu(tensor):
            return self.on_gpu.alltoall(tensor, splits, name, process_set)
        return super().alltoall(tensor, splits, name, process_set)

    def reducescatter(self, tensor: Any, name: str | None, reduction: Reduction) -> Call:
        if _are_on_one_gpu(tensor):
            return self.on_gpu.reducescatter(tensor, name, reduction)
        return super().reducescatter(tensor, name, reduction)


def _check_one_device(operation: str, tensors: list[Any]) -> None:
    """Checks that the tensors of a group are on one device, because a group is one operation. Errors  ValueError."""
    devices = [tensor.device for tensor in tensors if isinstance(tensor, torch.Tensor)]
    if not any(gpus.is_on_gpu(tensor) for tensor in tensors) or len(set(devices)) == 1:
        return
    other = next(index for index, device in enumerate(devices) if device != devices[0])
    raise ValueError(
        f"{operation}(): the tensors of a group must be on one device: tensor 0 is on {devices[0]}, tensor {other} on {devices[other]}"
    )


class PlacedGroups(StagedGroups):
    """The same for lists. A list with tensors of several devices, one of which is a GPU, is refused on every rank that
    passes it.
    """

    def __init__(self, calls: PlacedCalls) -> None:
        super().__init__(calls)
        self._on_gpu = GpuGroups(calls.on_gpu)

    def allreduce(self, tensors: Iterable[Any], name: str | None, reduction: Reduction, in_place: bool = False) -> Call:
        given = self.listed(tensors, "grouped_allreduce_" if in_place else "grouped_allreduce")
        _check_one_device("grouped_allreduce", given)
        if _are_on_one_gpu(*given):
            return self._on_gpu.allreduce(given, name, reduction, in_place)
        return super().allreduce(given, name, reduction, in_place)

    def allgather(self, tensors: Iterable[Any], name: str | None, process_set: ProcessSet) -> Call:
        given = self.listed(tensors, "grouped_allgather")
        _check_one_device("grouped_allgather", given)
        if _are_on_one_gpu(*given):
            return self._on_gpu.allgather(given, name, process_set)
        return super().allgather(given, name, process_set)

    def reducescatter(self, tensors: Iterable[Any], name: str | None, reduction: Reduction) -> Call:
        given = self.listed(tensors, "grouped_reducescatter")
        _check_one_device("grouped_reducescatter", given)
        if _are_on_one_gpu(*given):
            return self._on_gpu.reducescatter(given, name, reduction)
        return super().reducescatter(given, name, reduction)
