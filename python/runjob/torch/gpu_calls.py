"""The collectives on tensors of a GPU, where they lie: no thread waits for a GPU.

Streams  An operation begins when the work is done that PyTorch's current stream has where the operation is started. synchronize()
         makes the stream wait that is the current one there, as PyTorch's own collectives do; with HOROVOD_ENABLE_ASYNC_COMPLETION=0
         it waits on the host instead, as Horovod's does by default. poll() is true when the GPU is done.
Owner    Inputs and outputs are kept until the GPU is done with them, which is looked at with each later call: PyTorch may otherwise
         give their memory to other tensors while it is still being used.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Iterable
from ctypes import POINTER, byref, c_int32, c_int64, c_void_p
from typing import Any

import torch

from .. import job
from .._library import GPU_MEMORY, KINDS, Operation, Tensor, library
from ..calls import Calls, Reduction
from ..exceptions import Code
from ..grouped import GroupedCalls
from ..handles import Call
from ..process_sets import ProcessSet
from ..reduce_ops import Average, Sum
from . import gpus

_waits_on_host = os.environ.get("HOROVOD_ENABLE_ASYNC_COMPLETION") == "0"

#: Of each operation, the names of the arguments that its function takes, which are fields of runjob_tensor or runjob_operation.
_ONE = ("shape", "ndim", "dtype")
_REDUCTION = ("op", "prescale", "postscale")
_ROOM = ("input", "output", "output_bytes")
_ARGUMENTS: dict[str, tuple[str, ...]] = {
    "allreduce": ("input", "output", *_ONE, *_REDUCTION, "compression", "process_set"),
    "broadcast": ("output", *_ONE, "root", "process_set"),
    "allgather": (*_ROOM, *_ONE, "process_set"),
    "alltoall": (*_ROOM, "shape", "ndim", "splits", "nsplits", "dtype", "process_set"),
    "reducescatter": (*_ROOM, *_ONE, *_REDUCTION, "process_set"),
    "grouped_allreduce": ("tensors", "count", *_REDUCTION, "compression", "process_set"),
    "grouped_allgather": ("tensors", "count", "process_set"),
    "grouped_reducescatter": ("tensors", "count", *_REDUCTION, "process_set"),
}
_TENSOR_FIELDS = {field[0] for field in Tensor._fields_}

_copies = threading.local()  # the event of the last copy of a result in this thread


class GpuCall(Call):
    """An operation on tensors of one GPU, in place of `call`, whose description it takes over."""

    __slots__ = ("_copied", "_is_launched")

    def __init__(self, call: Call) -> None:
        super().__init__(call.kind, call.name, call.arguments, call.tensors, call.result, call.process_set)
        self._is_launched = False
        self._copied: Any = None

    def submit(self, wire_name: bytes) -> None:
        _forget_done()
        place = self._place()
        kind = self.kind.name
        fields = dict(zip(_ARGUMENTS[kind], self.arguments))
        described = {name: fields.pop(name) for name in list(fields) if name in _TENSOR_FIELDS}
        if described:
            described["shape"] = ctypes.cast(described["shape"], POINTER(c_int64))
            fields.update(tensors=(Tensor * 1)(Tensor(**described)), count=1)
        else:
            fields["is_group"] = 1
        if fields.get("splits") is not None:
            fields["splits"] = ctypes.cast(fields["splits"], POINTER(c_int64))
        fields = {"op": int(Sum), "prescale": 1.0, "postscale": 1.0, **fields}
        operation = Operation(
            name=wire_name, kind=KINDS[kind.removeprefix("grouped_")], memory=GPU_MEMORY, device=place.ordinal,
            stream=place.stream, **fields,
        )  # fmt: skip
        core_handle = c_int64()
        try:
            job.check(library().runjob_submit(byref(operation), byref(core_handle)))
        finally:
            self.core_handle = core_handle.value

    def block(self, wire_name: bytes) -> Any:
        try:
            self.submit(wire_name)
            self.wait()
            return self.take()
        finally:
            self.release()

    def wait(self) -> None:
        if _waits_on_host:
            job.wait(self.core_handle)
        else:
            stream = self._place().stream
            wait_on_stream = library().runjob_wait_on_stream
            code = Code.IN_PROGRESS
            while code == Code.IN_PROGRESS:  # comes back now and then for the sake of signal handlers
                code = wait_on_stream(self.core_handle, stream, job.SIGNAL_INTERVAL_SECONDS)
            job.check(code)
        self._is_launched = True

    def take(self) -> Any:
        _copies.event = None
        output = super().take()
        self._copied = _copies.event
        return output

    def release(self) -> None:
        if self.core_handle == 0 or not self._is_launched:
            super().release()
            return
        with _kept_lock:
            _kept.append((self.core_handle, self._copied, self.tensors))
        self.core_handle = 0  # its name is free
        _forget_done()

    def _place(self) -> gpus.Place:
        return gpus.place_of(next(tensor for tensor in self.tensors if tensor is not None))


#: Operations that are launched, and have been taken: the library's handle, the event of a copy of the result, the tensors.
_kept: list[tuple[int, Any, tuple[Any, ...]]] = []
_kept_lock = threading.Lock()


def _forget_done() -> None:
    """Releases what GPUs are done with."""
    if not _kept:
        return
    with _kept_lock:
        done = [each for each in _kept if library().runjob_poll(each[0]) != 0 and (each[1] is None or each[1].query())]
        _kept[:] = [each for each in _kept if each not in done]
    for core_handle, *_ in done:
        library().runjob_release(core_handle)


def kept() -> int:
    """The number of operations whose tensors are kept because a GPU may still use them."""
    _forget_done()
    return len(_kept)


class GpuCalls(Calls[torch.Tensor]):
    """The operations on tensors of a GPU, described."""

    def allreduce(self, tensor: Any, name: str | None, reduction: Reduction, in_place: bool = False) -> Call:
        if in_place:
            self.arrays.in_place(tensor, "allreduce_")
        sent, simple = _sent(tensor, reduction), _simple([tensor], reduction)
        call = super().allreduce(sent, name, simple, in_place or sent is not tensor)
        return _received(call, lambda output: _finished(output, tensor, reduction, simple, in_place))

    def reducescatter(self, tensor: Any, name: str | None, reduction: Reduction) -> Call:
        simple = _simple([tensor], reduction)
        call = super().reducescatter(_sent(tensor, reduction), name, simple)
        return _received(call, lambda output: _finished(output, tensor, reduction, simple, False))

    def allgather(self, tensor: Any, name: str | None, process_set: ProcessSet) -> Call:
        return GpuCall(super().allgather(tensor, name, process_set))

    def broadcast(self, tensor: Any, root_rank: int, name: str | None, process_set: ProcessSet, in_place: bool = False) -> Call:
        return GpuCall(super().broadcast(tensor, root_rank, name, process_set, in_place))

    def alltoall(self, tensor: Any, splits: Any, name: str | None, process_set: ProcessSet) -> Call:
        return GpuCall(super().alltoall(tensor, splits, name, process_set))

    def own(self, data: c_void_p, shape: Any, ndim: c_int32, like: torch.Tensor, room: torch.Tensor | None) -> torch.Tensor:
        extents = tuple(shape[: ndim.value])
        if room is not None and data.value == room.data_ptr():
            return self.arrays.cut(room, extents)
        output = self.arrays.empty(extents, like)
        if output.numel():
            _copies.event = gpus.copy(data, output)
        return output


class GpuGroups(GroupedCalls[torch.Tensor]):
    """The same for lists of tensors of one GPU."""

    def allreduce(self, tensors: Iterable[Any], name: str | None, reduction: Reduction, in_place: bool = False) -> Call:
        given = list(tensors)
        if in_place:
            self.check_distinct(given)
            for tensor in given:
                self._arrays.in_place(tensor, "allreduce_")
        sent, simple = [_sent(tensor, reduction) for tensor in given], _simple(given, reduction)
        call = super().allreduce(sent, name, simple, in_place)
        return _received(call, lambda outputs: _all_finished(outputs, given, reduction, simple, in_place))

    def allgather(self, tensors: Iterable[Any], name: str | None, process_set: ProcessSet) -> Call:
        return GpuCall(super().allgather(tensors, name, process_set))

    def reducescatter(self, tensors: Iterable[Any], name: str | None, reduction: Reduction) -> Call:
        given = list(tensors)
        simple = _simple(given, reduction)
        call = super().reducescatter([_sent(tensor, reduction) for tensor in given], name, simple)
        return _received(call, lambda outputs: _all_finished(outputs, given, reduction, simple, False))


# What NCCL's operators cannot express is done by PyTorch, on the stream that is the current one before and after the operation.

_COMPRESSED = {1: torch.float16, 2: torch.bfloat16}
_SHORT = {torch.int16, getattr(torch, "uint16", torch.int16)}


def _is_scaled(reduction: Reduction) -> bool:
    return reduction.prescale_factor != 1 or reduction.postscale_factor != 1


def _sent(tensor: Any, reduction: Reduction) -> Any:
    """The tensor in the dtype in which it is reduced: a compressed one, or int32 for integers of 16 bits."""
    if not gpus.is_on_gpu(tensor):
        return tensor  # refused later
    if reduction.native and tensor.is_floating_point():
        return tensor.detach().to(_COMPRESSED[reduction.native])
    if tensor.dtype in _SHORT and reduction.op != Average and not _is_scaled(reduction):
        return tensor.to(torch.int32)
    return tensor


def _simple(tensors: list[Any], reduction: Reduction) -> Reduction:
    """The library's part: without a compression, and without the last factor of sums of floats."""
    are_floats = all(isinstance(tensor, torch.Tensor) and tensor.is_floating_point() for tensor in tensors)
    if are_floats and reduction.op in (Sum, Average):
        reduction = reduction._replace(postscale_factor=1.0)
    return reduction._replace(native=0)


def _finished(output: torch.Tensor, given: torch.Tensor, asked: Reduction, done: Reduction, in_place: bool) -> torch.Tensor:
    if done.postscale_factor != asked.postscale_factor:
        output.detach().mul_(asked.postscale_factor)
    if output.dtype != given.dtype:
        output = output.to(given.dtype)
    if not in_place or output is given:
        return output
    given.data.copy_(output)  # as the library writes into tensors: autograd does not count it as a change
    return given


def _all_finished(
    outputs: list[torch.Tensor], given: list[torch.Tensor], asked: Reduction, done: Reduction, in_place: bool
) -> list[torch.Tensor]:
    return [_finished(*pair, asked, done, in_place) for pair in zip(outputs, given)]


def _received(call: Call, further: Callable[[Any], Any]) -> GpuCall:
    take = call.result
    call.result = lambda core: further(take(core))
    return GpuCall(call)
