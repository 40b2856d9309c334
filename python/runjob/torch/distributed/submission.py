"""One operation of the library for tensors of PyTorch, described by runjob_operation and submitted.

Names    none: torch.distributed matches operations by their order in a group, and so does the library without a name.
Threads  any. Operations of one group must be submitted in the same order on all ranks, as torch.distributed asks.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import POINTER, addressof, byref, c_int32, c_int64
from typing import Any

import torch

from ... import job
from ..._library import GPU_MEMORY, HOST_MEMORY, KINDS, Operation, Tensor, library, set_operation, set_tensor
from ...exceptions import Code, MismatchError
from ..tensors import DTYPES

_SIZE = ctypes.sizeof(Operation)
_IN_PROGRESS = int(Code.IN_PROGRESS)
_TENSOR_SIZE = ctypes.sizeof(Tensor)


class Part:
    """One operation of the library.

    Owner  it must live until the operation is done, because the library reads its structs and tensors.
    """

    def __init__(self) -> None:
        self.operation = Operation()

    def submit(self) -> int:
        """Submits it and returns the library's handle. Errors  those of runjob_submit()."""
        handle = c_int64()
        job.check(library().runjob_submit(byref(self.operation), byref(handle)))
        return handle.value

    def run(self) -> int:
        """Runs it for at most the interval after which signal handlers must run. Returns 0 if it is done, else its handle.

        Errors  those of the operation, and of check().
        """
        handle = c_int64()
        code = library().runjob_run(byref(self.operation), job.SIGNAL_INTERVAL_SECONDS, byref(handle))
        if code == Code.IN_PROGRESS:
            return handle.value
        try:
            job.check(code)
            if handle.value:
                self.check(handle.value)
        finally:
            if handle.value:
                library().runjob_release(handle)
        return 0

    def check(self, handle: int) -> None:
        """Checks the result of an operation that is done. Errors  MismatchError if a rank has given more or fewer elements
        than the outputs take from it.
        """


class Barrier(Part):
    """A barrier of a process set. It may be submitted again at any time."""

    def __init__(self, process_set: int) -> None:
        super().__init__()
        set_operation(self.operation, 0, _SIZE, 0, KINDS["barrier"], 0, 0, 0, 0, 1.0, 1.0, 0, 0, process_set, 0, 0, HOST_MEMORY, 0, 0)


class Description(Part):
    """An operation on tensors. `pairs` has an input, and the output that the library writes, for each of them. All are
    contiguous.

    takes  allgather and alltoall: the elements that the output takes from each rank, in the order of the group.
    """

    def __init__(
        self, kind: str, pairs: Sequence[tuple[torch.Tensor, torch.Tensor]], *, process_set: int, op: int = 0,
        prescale: float = 1.0, root: int = 0, rows: int = 0, splits: Sequence[int] | None = None,
        takes: Sequence[int] = (),
    ) -> None:  # fmt: skip
        super().__init__()
        self._pairs = pairs
        self._shapes = [_shape(tensor, rows) for tensor, _ in pairs]
        self._tensors = (Tensor * len(pairs))()
        for place, (pair, shape) in enumerate(zip(pairs, self._shapes)):
            _describe(self._tensors, place * _TENSOR_SIZE, pair, shape)
        self._splits = None if splits is None else (c_int64 * len(splits))(*splits)
        first = pairs[0][0]
        memory, device, stream = HOST_MEMORY, 0, 0
        if first.is_cuda:
            memory, device = GPU_MEMORY, first.device.index
            stream = torch.cuda.current_stream(first.device).cuda_stream
        set_operation(
            self.operation, 0, _SIZE, 0, KINDS[kind], len(pairs), addressof(self._tensors), len(pairs) > 1, op, prescale, 1.0, 0, root,
            process_set, len(splits or ()), 0 if self._splits is None else addressof(self._splits), memory, device, stream,
        )  # fmt: skip
        self._takes = list(takes)

    def check(self, handle: int) -> None:
        if not self._takes:
            return
        splits, count = POINTER(c_int64)(), c_int32()
        job.check(library().runjob_received_splits(handle, byref(splits), byref(count)))
        given = splits[: count.value]
        if given != self._takes:
            raise MismatchError(f"the ranks have given {given} elements, in their order, and the outputs take {self._takes}")


class Reusable(Part):
    """An allreduce of one contiguous tensor in place, in host memory, for call after call. One call at a time."""

    def __init__(self, dtype: torch.dtype, op: int, process_set: int) -> None:
        super().__init__()
        self._number, self._bytes = DTYPES[dtype], torch.empty(0, dtype=dtype).element_size()
        self._extents, self._tensor, self._handle = (c_int64 * 1)(), Tensor(), c_int64()
        self._address = addressof(self._extents)
        set_operation(
            self.operation, 0, _SIZE, 0, KINDS["allreduce"], 1, addressof(self._tensor), 0, op, 1.0, 1.0, 0, 0, process_set, 0, 0,
            HOST_MEMORY, 0, 0,
        )  # fmt: skip
        self._run, self._arguments = library().runjob_run, (byref(self.operation), job.SIGNAL_INTERVAL_SECONDS, byref(self._handle))

    def run_on(self, tensor: torch.Tensor) -> int:
        """As run()."""
        elements, address = tensor.numel(), tensor.data_ptr()
        self._extents[0] = elements
        set_tensor(self._tensor, 0, address, address, elements * self._bytes, self._address, 1, self._number)
        code = self._run(*self._arguments)
        if code == _IN_PROGRESS:
            return self._handle.value
        if code:
            job.check(code)
        return 0


def dense(tensor: torch.Tensor) -> torch.Tensor:
    """`tensor` if its memory has its elements one after the other, else a copy. There are views with gaps, and views that
    conjugate or negate what is in memory.
    """
    return tensor.contiguous().resolve_conj().resolve_neg()


def is_dense(tensor: torch.Tensor) -> bool:
    return tensor.is_contiguous() and not tensor.is_conj() and not tensor.is_neg()


def _shape(tensor: torch.Tensor, rows: int) -> Any:
    """The extents that the library sees: one, or two if the first is given as `rows`."""
    if rows:
        return (c_int64 * 2)(rows, tensor.numel() // rows)
    return (c_int64 * 1)(tensor.numel())


def _describe(tensors: Any, place: int, pair: tuple[torch.Tensor, torch.Tensor], shape: Any) -> None:
    tensor, output = pair
    set_tensor(
        tensors, place, tensor.data_ptr(), output.data_ptr(), output.numel() * output.element_size(), addressof(shape), len(shape),
        DTYPES[tensor.dtype],
    )  # fmt: skip
