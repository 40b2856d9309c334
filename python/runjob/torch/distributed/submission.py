"""One operation of the library for tensors of PyTorch, described by runjob_operation and submitted.

Names    torch.distributed matches operations by their order in a group, and the library by their names. A name here has
         what an operation of that place must have in common on all ranks (kind, dtype, elements, reduction), and a number
         that operations of one description take in turn. So a step that repeats has the same names.
Threads  any. Operations of one group must be submitted in the same order on all ranks, as torch.distributed asks.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from ctypes import POINTER, addressof, byref, c_int32, c_int64, c_void_p
from typing import Any

import torch

from ... import job
from ..._library import GPU_MEMORY, HOST_MEMORY, KINDS, Operation, Tensor, library, set_operation, set_tensor
from ...exceptions import Code, MismatchError
from ..tensors import DTYPES

_SIZE = ctypes.sizeof(Operation)
_TENSOR_SIZE = ctypes.sizeof(Tensor)
_OP_NAMES = {0: "average", 1: "sum", 3: "min", 4: "max", 5: "product"}


class Part:
    """One operation of the library.

    signature  what all ranks must agree on; a part of its name.
    Owner      it must live until the operation is done, because the library reads its structs and tensors.
    """

    signature = ""

    def __init__(self) -> None:
        self.operation = Operation()

    def submit(self, name: bytes) -> int:
        """Submits it and returns the library's handle. Errors  those of runjob_submit()."""
        self.operation.name = name
        handle = c_int64()
        job.check(library().runjob_submit(byref(self.operation), byref(handle)))
        return handle.value

    def run(self, name: bytes) -> int:
        """Runs it for at most the interval after which signal handlers must run. Returns 0 if it is done, else its handle.

        Errors  those of the operation, and of check().
        """
        self.operation.name = name
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
        """Checks the result of an operation that is done. Errors  MismatchError if it does not fill the outputs, because
        ranks have given tensors of other sizes.
        """


class Barrier(Part):
    """A barrier of a process set."""

    signature = "all"

    def __init__(self, process_set: int) -> None:
        super().__init__()
        set_operation(self.operation, 0, _SIZE, 0, KINDS["barrier"], 0, 0, 0, 0, 1.0, 1.0, 0, 0, process_set, 0, 0, HOST_MEMORY, 0, 0)


class Description(Part):
    """An operation on tensors. `pairs` has an input, and the output that the library writes, for each of them. All are
    contiguous.
    """

    def __init__(
        self, kind: str, pairs: Sequence[tuple[torch.Tensor, torch.Tensor]], *, process_set: int, op: int = 0,
        prescale: float = 1.0, root: int = 0, rows: int = 0, splits: Sequence[int] | None = None,
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
        self._has_own_size = kind in ("allgather", "alltoall")
        self.signature = _signature(kind, op, root, prescale, [tensor for tensor, _ in pairs])


    def check(self, handle: int) -> None:
        if not self._has_own_size:
            return
        data, shape, ndim = c_void_p(), POINTER(c_int64)(), c_int32()
        job.check(library().runjob_output(handle, byref(data), byref(shape), byref(ndim)))
        elements, room = math.prod(shape[: ndim.value]), self._pairs[0][1].numel()
        if elements != room:
            raise MismatchError(f"the ranks have given {elements} elements in all, and the outputs have room for {room}")


def _signature(kind: str, op: int, root: int, prescale: float, tensors: Sequence[torch.Tensor]) -> str:
    """What all ranks must agree on: "allreduce.sum.float32.1000". Sizes of gathers and exchanges may differ."""
    parts = [str(tensors[0].dtype).replace("torch.", "")]
    if kind in ("allreduce", "reducescatter"):
        parts.insert(0, _OP_NAMES[op] if prescale == 1 else f"{_OP_NAMES[op]}-of-{prescale:g}-times")
    if kind not in ("allgather", "alltoall"):
        parts.append("+".join(str(tensor.numel()) for tensor in tensors))
    if kind == "broadcast":
        parts.append(f"from-{root}")
    return ".".join(parts)


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
