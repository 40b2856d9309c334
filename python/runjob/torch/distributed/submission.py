"""One operation of the library for tensors of PyTorch, described by runjob_operation and submitted.

Names    torch.distributed matches operations by their order in a group, and the library by their names. A name here has
         what an operation of that place must have in common on all ranks (kind, dtype, elements, reduction), and how
         many operations of that description are in flight. So a step that repeats has the same names.
Threads  any. Operations of one group must be submitted in the same order on all ranks, as torch.distributed asks.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import byref, c_int64
from typing import Any

import torch

from ... import job
from ..._library import GPU_MEMORY, HOST_MEMORY, KINDS, Operation, Tensor, library
from ..tensors import DTYPES

#: The library's number of torch.uint8, with which bytes of any dtype move.
_BYTES = DTYPES[torch.uint8]
_OP_NAMES = {0: "average", 1: "sum", 3: "min", 4: "max", 5: "product"}


def is_known(dtype: torch.dtype) -> bool:
    """True if the library has the dtype."""
    return dtype in DTYPES


class Description:
    """The structs of one operation. `tensors` has a pair for each tensor: its input, and the output that the library
    writes. Both are contiguous. They are lent to the library until the operation is done.
    """

    def __init__(
        self,
        kind: str,
        pairs: Sequence[tuple[torch.Tensor, torch.Tensor]],
        *,
        process_set: int,
        op: int = 0,
        prescale: float = 1.0,
        root: int = 0,
        rows: int = 0,
        splits: Sequence[int] | None = None,
    ) -> None:
        self.pairs = pairs
        self._shapes = [_shape(tensor, rows) for tensor, _ in pairs]
        self._tensors = (Tensor * len(pairs))(*map(_struct, pairs, self._shapes))
        self._splits = None if splits is None else (c_int64 * len(splits))(*splits)
        first = pairs[0][0]
        on_gpu = first.is_cuda
        self.operation = Operation(
            kind=KINDS[kind],
            count=len(pairs),
            tensors=self._tensors,
            is_group=int(len(pairs) > 1),
            op=op,
            prescale=prescale,
            postscale=1.0,
            root=root,
            process_set=process_set,
            nsplits=0 if splits is None else len(splits),
            splits=self._splits,
            memory=GPU_MEMORY if on_gpu else HOST_MEMORY,
            device=first.device.index if on_gpu else 0,
            stream=torch.cuda.current_stream(first.device).cuda_stream if on_gpu else None,
        )
        self.signature = _signature(kind, op, root, prescale, [tensor for tensor, _ in pairs])

    def submit(self, name: bytes) -> int:
        """Submits it and returns the library's handle. Errors  those of runjob_submit()."""
        self.operation.name = name
        handle = c_int64()
        job.check(library().runjob_submit(byref(self.operation), byref(handle)))
        return handle.value


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


def _struct(pair: tuple[torch.Tensor, torch.Tensor], shape: Any) -> Tensor:
    tensor, output = pair
    return Tensor(
        input=tensor.data_ptr(),
        output=output.data_ptr(),
        output_bytes=output.numel() * output.element_size(),
        shape=ctypes.cast(shape, ctypes.POINTER(c_int64)),
        ndim=len(shape),
        dtype=DTYPES.get(tensor.dtype, _BYTES),
    )


class Barrier:
    """A barrier of a process set, with the same functions."""

    signature = "all"

    def __init__(self, process_set: int) -> None:
        self._set = process_set

    def submit(self, name: bytes) -> int:
        handle = c_int64()
        job.check(library().runjob_barrier_async(name, self._set, byref(handle)))
        return handle.value
