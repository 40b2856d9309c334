"""The collectives on tensors of a GPU, in the GPU's memory. No thread waits for a GPU.

Streams  an operation begins when the work is done that PyTorch's current stream has when the operation is started.
         synchronize() makes its own current stream wait, as PyTorch's own collectives do. With
         HOROVOD_ENABLE_ASYNC_COMPLETION=0 it waits on the host instead, as Horovod's does by default. poll() is true
         when the GPU is done.
Owner    inputs and outputs are kept until the GPU is done with them, which each later call checks: PyTorch may
         otherwise give their memory to other tensors while it is still being used. The same holds for an operation that
         no thread waits for: when its handle is gone, nothing else keeps its tensors.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable
from ctypes import c_int32, c_void_p
from typing import Any

import torch

from .. import grouped, handles, job, process_sets
from .._library import GPU_MEMORY, library
from ..calls import ALLREDUCE, Calls, Reduction
from ..exceptions import Code
from ..grouped import GroupedCalls
from ..handles import Call
from ..process_sets import ProcessSet
from ..reduce_ops import Adasum, Average, Sum
from . import gpus
from .adasum import AdasumCall

_waits_on_host = os.environ.get("HOROVOD_ENABLE_ASYNC_COMPLETION") == "0"

_uses = threading.local()  # the event after this thread's last use of a result, in PyTorch's operations
_abandoned: deque[int] = deque()  # handles that have been deleted


class _Handle(int):
    """A handle that notes its own deletion, which may happen at any time and in any thread."""

    def __del__(self, abandon: Callable[[int], None] = _abandoned.append) -> None:
        abandon(int(self))


class GpuCall(Call):
    """An operation on tensors of one GPU, which replaces `call` and takes over its description. It may be submitted
    again after its end.
    """

    __slots__ = ("_is_launched", "_used")

    def __init__(self, call: Call) -> None:
        for name in Call.__slots__:
            setattr(self, name, getattr(call, name))
        self.operation.memory = GPU_MEMORY
        self._is_launched = False
        self._used: Any = None

    def handle(self, number: int) -> int:
        return _Handle(number)

    def submit(self, wire_name: bytes) -> None:
        _forget_done()
        self.operation.device, self.operation.stream = self._place()
        self._is_launched = False
        super().submit(wire_name)

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
            while code == Code.IN_PROGRESS:  # returns after an interval, so that signal handlers run
                code = wait_on_stream(self.core_handle, stream, job.SIGNAL_INTERVAL_SECONDS)
            job.check(code)
        self._is_launched = True

    def take(self) -> Any:
        _uses.event = None
        output = super().take()
        self._used = _uses.event
        return output

    def release(self) -> None:
        if self.core_handle == 0 or not self._is_launched:
            super().release()
        else:
            self.keep(_taken)

    def keep(self, where: deque[_Kept]) -> None:
        """Moves the operation to the others in `where`, until the GPU is done."""
        where.append((self.core_handle, self._used, self.tensors))
        self.core_handle = 0  # the name can be used again

    def _place(self) -> gpus.Place:
        return gpus.place_of(next(tensor for tensor in self.tensors if tensor is not None))


#: An operation: the library's handle, the event after the last use of the result, the tensors.
_Kept = tuple[int, Any, tuple[Any, ...]]
_taken: deque[_Kept] = deque()  # operations whose results have been taken, in that order: all are launched
_untaken: deque[_Kept] = deque()  # operations that no thread waits for: other ranks may never submit them
_kept_lock = threading.Lock()


def _forget_done() -> None:
    """Releases operations that GPUs are done with. Of those whose results were taken, it releases all up to the first
    that is not done.
    """
    while _abandoned:
        call = handles.abandon(_abandoned.popleft())
        if isinstance(call, GpuCall):
            call.keep(_untaken)
    if not (_taken or _untaken) or not _kept_lock.acquire(blocking=False):
        return
    try:
        while _taken and _release_if_done(_taken[0]):
            _taken.popleft()
        for _ in range(len(_untaken)):
            each = _untaken.popleft()
            if not _release_if_done(each):
                _untaken.append(each)
    finally:
        _kept_lock.release()


def _release_if_done(kept: _Kept) -> bool:
    core_handle, used, _ = kept
    is_done = library().runjob_poll(core_handle) != 0 and (used is None or bool(used.query()))
    if is_done:
        library().runjob_release(core_handle)
    return is_done


def kept() -> int:
    """The number of operations whose tensors are kept because a GPU may still use them."""
    _forget_done()
    return len(_taken) + len(_untaken)


def _note_use(tensor: torch.Tensor) -> None:
    """To be called after operations of PyTorch on a result: the tensors that they read are kept until the current
    stream has done them.
    """
    _uses.event = gpus.event(tensor)


class GpuCalls(Calls[torch.Tensor]):
    """The operations on tensors of a GPU, described."""

    def allreduce(self, tensor: Any, name: str | None, reduction: Reduction, in_place: bool = False) -> Call:
        if reduction.op == Adasum:
            if in_place:
                self.arrays.in_place(tensor, "allreduce_")
            return AdasumCall(self, ALLREDUCE, name, [tensor], reduction, lambda made: _placed(made, [tensor], in_place)[0], _waits_on_host)
        if _is_simple(tensor, reduction):
            return GpuCall(super().allreduce(tensor, name, reduction, in_place))
        if in_place:
            self.arrays.in_place(tensor, "allreduce_")
        division = _Division([tensor], reduction)
        sent = division.sent(tensor)
        call = super().allreduce(sent, name, division.simple, in_place or sent is not tensor)
        return _received(call, lambda output: division.finished(output, tensor, in_place))

    def reducescatter(self, tensor: Any, name: str | None, reduction: Reduction) -> Call:
        division = _Division([tensor], reduction)
        call = super().reducescatter(division.sent(tensor), name, division.simple)
        return _received(call, lambda output: division.finished(output, tensor, False))

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
            gpus.copy(data, output)
            _note_use(output)
        return output


class GpuGroups(GroupedCalls[torch.Tensor]):
    """The same for lists of tensors of one GPU."""

    def allreduce(self, tensors: Iterable[Any], name: str | None, reduction: Reduction, in_place: bool = False) -> Call:
        given = list(tensors)
        if in_place:
            self.check_distinct(given)
            for tensor in given:
                self._arrays.in_place(tensor, "allreduce_")
        if reduction.op == Adasum:
            return AdasumCall(
                self._calls, grouped.ALLREDUCE, name, given, reduction, lambda made: _placed(made, given, in_place), _waits_on_host
            )
        division = _Division(given, reduction)
        call = super().allreduce(list(map(division.sent, given)), name, division.simple, in_place)
        return _received(call, lambda outputs: division.all_finished(outputs, given, in_place))

    def allgather(self, tensors: Iterable[Any], name: str | None, process_set: ProcessSet) -> Call:
        return GpuCall(super().allgather(tensors, name, process_set))

    def reducescatter(self, tensors: Iterable[Any], name: str | None, reduction: Reduction) -> Call:
        given = list(tensors)
        division = _Division(given, reduction)
        call = super().reducescatter(list(map(division.sent, given)), name, division.simple)
        return _received(call, lambda outputs: division.all_finished(outputs, given, False))


def _placed(made: list[torch.Tensor], given: list[torch.Tensor], in_place: bool) -> list[torch.Tensor]:
    """The new tensors, or the given ones with their values."""
    if not in_place:
        return made
    for each, result in zip(given, made):
        each.data.copy_(result)  # copies as the library does: autograd does not count it as a change
    return given


# PyTorch does the part of a reduction that NCCL's operators cannot express, on the stream that is current before and
# after the operation.

_COMPRESSED = {1: torch.float16, 2: torch.bfloat16}
_WIDE = {torch.float32, torch.float64}
_SHORT = {torch.int16, getattr(torch, "uint16", torch.int16)}
_BYTES = {torch.int8, torch.uint8}


def _is_simple(tensor: Any, reduction: Reduction) -> bool:
    """True if the library does all of it. That holds for most allreduces of a training, for which a _Division would
    take longer than the rest.
    """
    return tensor.dtype.is_floating_point and reduction.prescale_factor == reduction.postscale_factor == 1 and not reduction.native


class _Division:
    """Divides a reduction of these tensors between PyTorch and the library, whose part is `simple`.

    The values are those of the host's collectives: integers are scaled and averaged in float64, truncated toward zero and limited to
    their dtype's range. The library refuses averages and scales of bools.
    """

    def __init__(self, tensors: Iterable[Any], asked: Reduction) -> None:
        dtypes = {tensor.dtype for tensor in tensors if isinstance(tensor, torch.Tensor)}
        averages, self._adds = asked.op == Average, asked.op in (Sum, Average)
        self._native = asked.native
        self._before = self._after = 1.0  # factors of the inputs and of the outputs
        self._divisor = 1
        self.simple = asked._replace(native=0)
        if torch.bool in dtypes:
            return
        self._after = asked.postscale_factor
        self.simple = self.simple._replace(postscale_factor=1.0)
        if asked.native or not (self._adds and dtypes <= _WIDE):
            self._before = asked.prescale_factor
            self.simple = self.simple._replace(prescale_factor=1.0)
        if averages and not all(dtype.is_floating_point for dtype in dtypes):
            self._divisor = process_sets.size_of(asked.process_set)
            self.simple = self.simple._replace(op=Sum)

    def sent(self, tensor: Any) -> Any:
        """The tensor that the library gets: scaled, compressed, or in int32."""
        if not isinstance(tensor, torch.Tensor):
            return tensor  # refused later
        sent = own = tensor.detach()
        if sent.is_floating_point():
            if self._before != 1:
                sent = sent * self._before
            if self._divisor != 1 and sent.dtype not in _WIDE:
                sent = sent.to(torch.float32)  # a sum may be too large for 16 bits
            elif self._native and sent.dtype in _WIDE:
                sent = sent.to(_COMPRESSED[self._native])
        elif self._before != 1:
            sent = _scaled(sent, self._before, 1, sent.dtype)
        is_scaled = self._adds and (self._after != 1 or self._divisor != 1)
        if sent.dtype in _SHORT or (sent.dtype in _BYTES and is_scaled):
            sent = sent.to(torch.int32)  # NCCL can add it, and it has room for a sum that is scaled
        return tensor if sent is own else sent.contiguous()

    def finished(self, output: torch.Tensor, given: torch.Tensor, in_place: bool) -> torch.Tensor:
        """The final result, computed from the library's result."""
        taken = output
        if output.element_size() < given.element_size() or not (given.is_floating_point() or self._adds):
            output = output.to(given.dtype)
        if self._after != 1 or self._divisor != 1:
            if output.is_floating_point():
                output.detach().mul_(self._after / self._divisor)
            else:
                output = _scaled(output, self._after, self._divisor, given.dtype)
        output = output.to(given.dtype)
        if in_place and output is not given:
            given.data.copy_(output)  # copies as the library does: autograd does not count it as a change
            output = given
        if output is not taken:
            _note_use(output)
        return output

    def all_finished(self, outputs: list[torch.Tensor], given: list[torch.Tensor], in_place: bool) -> list[torch.Tensor]:
        return [self.finished(*pair, in_place) for pair in zip(outputs, given)]


def _scaled(integers: torch.Tensor, factor: float, divisor: int, dtype: torch.dtype) -> torch.Tensor:
    """The scaled integers as `dtype`, limited to its range."""
    limits = torch.iinfo(dtype)
    scaled = (integers.to(torch.float64) * factor / divisor).trunc().nan_to_num(0.0, float("inf"), float("-inf"))
    most = float(limits.max)
    if most <= limits.max:  # true of all except int64, whose largest value float64 does not have
        return scaled.clamp(limits.min, most).to(dtype)
    below = scaled.clamp(limits.min, most - 1024)
    return torch.where(scaled >= most, limits.max, below.to(dtype))


def _received(call: Call, further: Callable[[Any], Any]) -> GpuCall:
    take = call.result
    call.result = lambda core: further(take(core))
    return GpuCall(call)
