"""Tensors of devices that the library cannot access, such as GPUs. Their values are copied to the CPU's memory and
back.

Streams  a tensor is read on PyTorch's current stream where the operation is started, and the caller waits for that. The
         result is written on the current stream of the thread that takes it. Therefore the order is that of any other
         operation on the tensor.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Callable

import torch

from ..calls import Calls, Reduction
from ..grouped import GroupedCalls
from ..handles import Call
from ..process_sets import ProcessSet


def is_far(value: Any) -> bool:
    """True if the library cannot access the value, although it has values."""
    return isinstance(value, torch.Tensor) and not value.is_cpu and not value.is_meta


class StagedCalls(Calls[torch.Tensor]):
    """The operations with tensors of any device. Operations in place work on the copy. So do all others that need no
    second copy.
    """

    def allreduce(self, tensor: Any, name: str | None, reduction: Reduction, in_place: bool = False) -> Call:
        if not is_far(tensor):
            return super().allreduce(tensor, name, reduction, in_place)
        call = super().allreduce(_near(tensor), name, reduction, in_place=True)
        return _with_result(call, lambda near: _returned(near, tensor, in_place))

    def allgather(self, tensor: Any, name: str | None, process_set: ProcessSet) -> Call:
        if not is_far(tensor):
            return super().allgather(tensor, name, process_set)
        return _with_result(super().allgather(_near(tensor), name, process_set), lambda near: _returned(near, tensor))

    def broadcast(
        self, tensor: Any, root_rank: int, name: str | None, process_set: ProcessSet, in_place: bool = False
    ) -> Call:
        if not is_far(tensor):
            return super().broadcast(tensor, root_rank, name, process_set, in_place)
        call = super().broadcast(_near(tensor), root_rank, name, process_set, in_place=True)
        return _with_result(call, lambda near: _returned(near, tensor, in_place))

    def alltoall(self, tensor: Any, splits: Any, name: str | None, process_set: ProcessSet) -> Call:
        if not is_far(tensor):
            return super().alltoall(tensor, splits, name, process_set)
        call = super().alltoall(_near(tensor), splits, name, process_set)
        return _with_result(call, lambda result: (_returned(result[0], tensor), result[1]))

    def reducescatter(self, tensor: Any, name: str | None, reduction: Reduction) -> Call:
        if not is_far(tensor):
            return super().reducescatter(tensor, name, reduction)
        return _with_result(super().reducescatter(_near(tensor), name, reduction), lambda near: _returned(near, tensor))


class StagedGroups(GroupedCalls[torch.Tensor]):
    """The same for lists, whose tensors may lie on several devices."""

    def allreduce(self, tensors: Iterable[Any], name: str | None, reduction: Reduction, in_place: bool = False) -> Call:
        given = self.listed(tensors, "grouped_allreduce_" if in_place else "grouped_allreduce")
        if not any(map(is_far, given)):
            return super().allreduce(given, name, reduction, in_place)
        if in_place:
            self.check_distinct(given)
        call = super().allreduce([_copied(tensor) for tensor in given], name, reduction, in_place=True)
        return _with_result(call, lambda nears: [_returned(*pair, in_place) for pair in zip(nears, given)])

    def allgather(self, tensors: Iterable[Any], name: str | None, process_set: ProcessSet) -> Call:
        given = self.listed(tensors, "grouped_allgather")
        if not any(map(is_far, given)):
            return super().allgather(given, name, process_set)
        return _list_returned(super().allgather(list(map(_near, given)), name, process_set), given)

    def reducescatter(self, tensors: Iterable[Any], name: str | None, reduction: Reduction) -> Call:
        given = self.listed(tensors, "grouped_reducescatter")
        if not any(map(is_far, given)):
            return super().reducescatter(given, name, reduction)
        return _list_returned(super().reducescatter(list(map(_near, given)), name, reduction), given)


def _copied(tensor: Any) -> Any:
    """A copy of the tensor in the CPU's memory and in one piece. A value that is not a tensor is returned, to be
    refused later.
    """
    if not isinstance(tensor, torch.Tensor) or tensor.layout is not torch.strided or tensor.is_meta:
        return tensor
    return tensor.detach().to("cpu", copy=True, memory_format=torch.contiguous_format)


def _near(tensor: Any) -> Any:
    """The tensor, or a copy in the CPU's memory if is_far() is true."""
    return _copied(tensor) if is_far(tensor) else tensor


def _returned(near: torch.Tensor, given: torch.Tensor, in_place: bool = False) -> torch.Tensor:
    """The result on the device of the given tensor, or in the given tensor."""
    if not in_place:
        return near.to(given.device)
    given.data.copy_(near)  # copies as the library does: autograd does not count it as a change
    return given


def _list_returned(call: Call, given: list[torch.Tensor]) -> Call:
    return _with_result(call, lambda nears: [_returned(*pair) for pair in zip(nears, given)])


def _with_result(call: Call, further: Callable[[Any], Any]) -> Call:
    take = call.result
    call.result = lambda core: further(take(core))
    return call
