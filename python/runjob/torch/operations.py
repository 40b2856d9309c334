"""The collectives as handles and in place. The ones that autograd follows are in differentiable.py.

Shape    a tensor's shape is the same on all ranks, except for allgather's and alltoall's first extent.
dtype    uint8, int8, uint16, int16, int32, int64, float16, bfloat16, float32, float64, bool; the same on all ranks.
         Reductions of bool: Sum and Max are or, Product and Min are and; Average and scaling are refused.
Threads  any, concurrently. Everything that waits lets go of the GIL.
Errors   ValueError for what can never work (dtype, a non-contiguous tensor in place, a name in flight, root_rank);
         HorovodInternalError and its kinds from synchronize(), on every rank: MismatchError when the ranks disagree.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import POINTER, byref, c_int32, c_int64, c_void_p

import torch

from .. import basics, process_sets, reduce_ops
from .._library import library
from ..process_sets import GlobalProcessSet, global_process_set
from . import handles
from .handles import synchronize
from .tensors import DTYPES, check, check_in_place, shape_of


def allreduce_async(
    tensor: torch.Tensor,
    average: bool | None = None,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: GlobalProcessSet = global_process_set,
) -> int:
    """Starts postscale_factor * reduction over ranks of (prescale_factor * tensor) into a new tensor; returns a handle.

    op  Average (the default), Sum, Min, Max, Product. `average=` is deprecated. Averages of integers truncate toward zero.
    """
    op = reduce_ops.resolve(op, average)
    check(tensor, "allreduce")
    tensor = tensor.detach().contiguous()
    return _start_allreduce(tensor, torch.empty_like(tensor), name, op, prescale_factor, postscale_factor, process_set)


def allreduce_async_(
    tensor: torch.Tensor,
    average: bool | None = None,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: GlobalProcessSet = global_process_set,
) -> int:
    """allreduce_async() in place: `tensor` must not be touched until synchronize(handle) returns it."""
    op = reduce_ops.resolve(op, average)
    check_in_place(tensor, "allreduce_")
    return _start_allreduce(tensor, tensor, name, op, prescale_factor, postscale_factor, process_set)


def allreduce_(
    tensor: torch.Tensor,
    average: bool | None = None,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: GlobalProcessSet = global_process_set,
) -> torch.Tensor:
    """allreduce_async_(), waited for. Returns `tensor`."""
    op = reduce_ops.resolve(op, average)
    return synchronize(
        allreduce_async_(tensor, None, name, op, prescale_factor, postscale_factor, process_set=process_set)
    )


def allgather_async(
    tensor: torch.Tensor, name: str | None = None, process_set: GlobalProcessSet = global_process_set
) -> int:
    """Starts the concatenation of the ranks' tensors along dimension 0, in rank order; returns a handle.

    Shape  at least one dimension; the first extent may differ among ranks.
    """
    check(tensor, "allgather")
    set_id = process_sets.identifier(process_set)
    tensor = tensor.detach().contiguous()

    def submit(wire_name, out):
        return library().runjob_allgather_async(
            wire_name, tensor.data_ptr(), None, 0, shape_of(tensor), tensor.dim(), DTYPES[tensor.dtype], set_id, out
        )

    return handles.start("allgather", name, submit, (tensor,), lambda core: _copy_output(core, tensor.dtype))


def broadcast_async(
    tensor: torch.Tensor,
    root_rank: int,
    name: str | None = None,
    process_set: GlobalProcessSet = global_process_set,
) -> int:
    """Starts a broadcast of root_rank's tensor into a new tensor on every rank; returns a handle."""
    check(tensor, "broadcast")
    output = tensor.detach().clone(memory_format=torch.contiguous_format)
    return broadcast_async_(output, root_rank, name, process_set)


def broadcast_async_(
    tensor: torch.Tensor,
    root_rank: int,
    name: str | None = None,
    process_set: GlobalProcessSet = global_process_set,
) -> int:
    """broadcast_async() in place: read on root_rank, overwritten on the others, not to be touched until it is done."""
    check_in_place(tensor, "broadcast_")
    set_id = process_sets.identifier(process_set)

    def submit(wire_name, out):
        return library().runjob_broadcast_async(
            wire_name, tensor.data_ptr(), shape_of(tensor), tensor.dim(), DTYPES[tensor.dtype], root_rank, set_id, out
        )

    return handles.start("broadcast", name, submit, (tensor,), lambda core: tensor)


def broadcast_(
    tensor: torch.Tensor,
    root_rank: int,
    name: str | None = None,
    process_set: GlobalProcessSet = global_process_set,
) -> torch.Tensor:
    """broadcast_async_(), waited for. Returns `tensor`."""
    return synchronize(broadcast_async_(tensor, root_rank, name, process_set))


def alltoall_async(
    tensor: torch.Tensor,
    splits: torch.Tensor | Sequence[int] | None = None,
    name: str | None = None,
    process_set: GlobalProcessSet = global_process_set,
) -> int:
    """Starts sending splits[r] rows of `tensor` (its first dimension) to rank r, the first ones to rank 0; returns a handle.

    splits  as many integers as ranks, on the CPU, whose sum is the number of rows; without them each rank gets as many.
    synchronize() returns two tensors: what has come, in rank order, and how many rows came from each rank (int32).
    """
    check(tensor, "alltoall")
    set_id = process_sets.identifier(process_set)
    tensor = tensor.detach().contiguous()
    rows = None if splits is None else _splits(splits)

    def submit(wire_name, out):
        given = None if rows is None else (c_int64 * len(rows))(*rows)
        return library().runjob_alltoall_async(
            wire_name, tensor.data_ptr(), None, 0, shape_of(tensor), tensor.dim(), given, 0 if rows is None else len(rows),
            DTYPES[tensor.dtype], set_id, out,
        )  # fmt: skip

    def result(core):
        return _copy_output(core, tensor.dtype), _received_splits(core)

    return handles.start("alltoall", name, submit, (tensor,), result)


def reducescatter_async(
    tensor: torch.Tensor,
    name: str | None = None,
    op: int = reduce_ops.Average,
    process_set: GlobalProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> int:
    """Starts a reduction, as allreduce_async(), of which each rank gets a part of the rows, rank 0 the first; returns a handle.

    Shape  at least one dimension, the same on all ranks. Where the rows cannot be divided evenly, the first ranks get one more.
    """
    op = reduce_ops.resolve(op, None)
    check(tensor, "reducescatter")
    set_id = process_sets.identifier(process_set)
    tensor = tensor.detach().contiguous()

    def submit(wire_name, out):
        return library().runjob_reducescatter_async(
            wire_name, tensor.data_ptr(), None, 0, shape_of(tensor), tensor.dim(), DTYPES[tensor.dtype], op, prescale_factor,
            postscale_factor, set_id, out,
        )  # fmt: skip

    return handles.start("reducescatter", name, submit, (tensor,), lambda core: _copy_output(core, tensor.dtype))


def barrier(process_set: GlobalProcessSet = global_process_set) -> None:
    """Returns when all ranks have called it."""
    set_id = process_sets.identifier(process_set)
    synchronize(
        handles.start(
            "barrier", None, lambda wire_name, out: library().runjob_barrier_async(wire_name, set_id, out), (), lambda core: None
        )
    )


def _start_allreduce(tensor, output, name, op, prescale_factor, postscale_factor, process_set) -> int:
    set_id = process_sets.identifier(process_set)

    def submit(wire_name, out):
        return library().runjob_allreduce_async(
            wire_name,
            tensor.data_ptr(),
            output.data_ptr(),
            shape_of(tensor),
            tensor.dim(),
            DTYPES[tensor.dtype],
            op,
            prescale_factor,
            postscale_factor,
            set_id,
            out,
        )

    return handles.start("allreduce", name, submit, (tensor, output), lambda core: output)


def _splits(splits: torch.Tensor | Sequence[int]) -> list[int]:
    rows = splits.tolist() if isinstance(splits, torch.Tensor) else list(splits)
    if not rows or not all(isinstance(each, int) for each in rows):
        raise ValueError(f"alltoall: splits must be one integer for each rank, not {splits!r}")
    return rows


def _received_splits(core_handle: int) -> torch.Tensor:
    splits, count = POINTER(c_int64)(), c_int32()
    basics.check(library().runjob_received_splits(core_handle, byref(splits), byref(count)))
    return torch.tensor(splits[: count.value], dtype=torch.int32)


def _copy_output(core_handle: int, dtype: torch.dtype) -> torch.Tensor:
    """A tensor of our own with what the library's handle holds."""
    data, shape, ndim = c_void_p(), POINTER(c_int64)(), c_int32()
    basics.check(library().runjob_output(core_handle, byref(data), byref(shape), byref(ndim)))
    output = torch.empty(shape[: ndim.value], dtype=dtype)
    if output.numel():
        ctypes.memmove(output.data_ptr(), data, output.numel() * output.element_size())
    return output
