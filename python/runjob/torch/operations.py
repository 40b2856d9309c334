"""The collectives as handles and in place. The ones that autograd follows are in differentiable.py.

Names    identify an operation among the ranks. Unnamed ones are told apart by their order, which must be the same on all ranks;
         the handles, and for each operation the synchronous calls, are counted separately: what is unnamed is synchronous
         on all ranks or on none.

process_set  the ranks that take part: "all ranks" means them, sizes and rank order are theirs. `root_rank` is a rank of the job.
Shape    a tensor's shape is the same on all ranks, except for allgather's and alltoall's first extent.
dtype    uint8, int8, uint16, int16, int32, int64, float16, bfloat16, float32, float64, bool; the same on all ranks.
         Reductions of bool: Sum and Max are or, Product and Min are and; Average and scaling are refused.
Threads  any, concurrently. Everything that waits lets go of the GIL.
Errors   ValueError for what can never work (dtype, a non-contiguous tensor in place, a name in flight, root_rank);
         HorovodInternalError and its kinds from synchronize(), on every rank: MismatchError when the ranks disagree.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from ctypes import POINTER, byref, c_int32, c_int64, c_void_p

import torch

from .. import basics, process_sets, reduce_ops
from .._library import library
from ..process_sets import ProcessSet, global_process_set
from . import handles
from .handles import Call, Collective
from .tensors import DTYPES, check, check_in_place, dense, shape_of

_ALLREDUCE = Collective("allreduce", "compressed_allreduce")
_BROADCAST, _ALLGATHER, _ALLTOALL, _REDUCESCATTER, _BARRIER = map(
    Collective, ("broadcast", "allgather", "alltoall", "reducescatter", "barrier")
)


def allreduce_async(
    tensor: torch.Tensor,
    average: bool | None = None,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Starts postscale_factor * reduction over ranks of (prescale_factor * tensor) into a new tensor; returns a handle.

    op  Average (the default), Sum, Min, Max, Product. `average=` is deprecated. Averages of integers truncate toward zero.
    """
    op = reduce_ops.resolve(op, average)
    return handles.start(allreduce_call(tensor, name, op, prescale_factor, postscale_factor, process_set))


def allreduce_async_(
    tensor: torch.Tensor,
    average: bool | None = None,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> int:
    """allreduce_async() in place: `tensor` must not be touched until synchronize(handle) returns it."""
    op = reduce_ops.resolve(op, average)
    return handles.start(allreduce_call_(tensor, name, op, prescale_factor, postscale_factor, process_set))


def allreduce_(
    tensor: torch.Tensor,
    average: bool | None = None,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> torch.Tensor:
    """allreduce_async_(), waited for. Returns `tensor`."""
    op = reduce_ops.resolve(op, average)
    return handles.run(allreduce_call_(tensor, name, op, prescale_factor, postscale_factor, process_set))


def allgather_async(
    tensor: torch.Tensor, name: str | None = None, process_set: ProcessSet = global_process_set
) -> int:
    """Starts the concatenation of the ranks' tensors along dimension 0, in rank order; returns a handle.

    Shape  at least one dimension; the first extent may differ among ranks.
    """
    return handles.start(allgather_call(tensor, name, process_set))


def broadcast_async(
    tensor: torch.Tensor,
    root_rank: int,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Starts a broadcast of root_rank's tensor into a new tensor on every rank; returns a handle."""
    return handles.start(broadcast_call(tensor, root_rank, name, process_set))


def broadcast_async_(
    tensor: torch.Tensor,
    root_rank: int,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> int:
    """broadcast_async() in place: read on root_rank, overwritten on the others, not to be touched until it is done."""
    return handles.start(_broadcast_call_(tensor, root_rank, name, process_set))


def broadcast_(
    tensor: torch.Tensor,
    root_rank: int,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> torch.Tensor:
    """broadcast_async_(), waited for. Returns `tensor`."""
    return handles.run(_broadcast_call_(tensor, root_rank, name, process_set))


def alltoall_async(
    tensor: torch.Tensor,
    splits: torch.Tensor | Sequence[int] | None = None,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Starts sending splits[r] rows of `tensor` (its first dimension) to rank r, the first ones to rank 0; returns a handle.

    splits  as many integers as ranks, on the CPU, whose sum is the number of rows; without them each rank gets as many.
    synchronize() returns two tensors: what has come, in rank order, and how many rows came from each rank (int32).
    """
    return handles.start(alltoall_call(tensor, splits, name, process_set))


def reducescatter_async(
    tensor: torch.Tensor,
    name: str | None = None,
    op: int = reduce_ops.Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> int:
    """Starts a reduction, as allreduce_async(), of which each rank gets a part of the rows, rank 0 the first; returns a handle.

    Shape  at least one dimension, the same on all ranks. Where the rows cannot be divided evenly, the first ranks get one more.
    """
    op = reduce_ops.resolve(op, None)
    return handles.start(reducescatter_call(tensor, name, op, process_set, prescale_factor, postscale_factor))


def barrier(process_set: ProcessSet = global_process_set) -> None:
    """Returns when all ranks of the set have called it."""
    set_id = process_sets.identifier(process_set)
    handles.run(Call(_BARRIER, None, (set_id,), (), lambda core: None, set_id))


def join(device: int = -1) -> int:
    """Says that this rank has no more data, and returns when all ranks have: the rank that joined last, the same on all.

    Until then, zeros of this rank take part in the others' allreduces; their averages still divide by the size. All other
    operations but barriers raise a HorovodInternalError on them. `device` has no effect: nothing is computed on it.
    """
    handle = c_int64()
    basics.check(library().runjob_join_async(byref(handle)))
    try:
        basics.wait(handle.value)
        data, shape, ndim = c_void_p(), POINTER(c_int64)(), c_int32()
        basics.check(library().runjob_output(handle, byref(data), byref(shape), byref(ndim)))
        return ctypes.cast(data, POINTER(c_int32))[0]
    finally:
        library().runjob_release(handle)


# What each operation hands to the library; `op` is a resolved one.


def allreduce_call(
    tensor: torch.Tensor,
    name: str | None,
    op: int,
    prescale_factor: float,
    postscale_factor: float,
    process_set: ProcessSet,
    native: int = 0,
) -> Call:
    """native  the library's part of a compression, see compression.split()."""
    check(tensor, "allreduce")
    tensor = dense(tensor)
    return _reduction(tensor, torch.empty_like(tensor), name, op, prescale_factor, postscale_factor, native, process_set)


def allreduce_call_(
    tensor: torch.Tensor,
    name: str | None,
    op: int,
    prescale_factor: float,
    postscale_factor: float,
    process_set: ProcessSet,
    native: int = 0,
) -> Call:
    check_in_place(tensor, "allreduce_")
    return _reduction(tensor, tensor, name, op, prescale_factor, postscale_factor, native, process_set)


def _reduction(tensor, output, name, op, prescale_factor, postscale_factor, native, process_set) -> Call:
    set_id = process_sets.identifier(process_set)
    arguments = (
        tensor.data_ptr(), output.data_ptr(), *_form(tensor), op, prescale_factor, postscale_factor, native, set_id,
    )  # fmt: skip
    return Call(_ALLREDUCE, name, arguments, (tensor, output), lambda core: output, set_id)


def allgather_call(tensor: torch.Tensor, name: str | None, process_set: ProcessSet) -> Call:
    check(tensor, "allgather")
    set_id = process_sets.identifier(process_set)
    tensor = dense(tensor)
    room = gathered_room(tensor, process_set)
    arguments = (tensor.data_ptr(), *_place(room), *_form(tensor), set_id)
    return Call(_ALLGATHER, name, arguments, (tensor, room), lambda core: _take_output(core, tensor.dtype, room), set_id)


def broadcast_call(tensor: torch.Tensor, root_rank: int, name: str | None, process_set: ProcessSet) -> Call:
    check(tensor, "broadcast")
    output = tensor.detach().clone(memory_format=torch.contiguous_format)
    return _broadcast_call_(output, root_rank, name, process_set)


def _broadcast_call_(tensor: torch.Tensor, root_rank: int, name: str | None, process_set: ProcessSet) -> Call:
    check_in_place(tensor, "broadcast_")
    set_id = process_sets.identifier(process_set)
    arguments = (tensor.data_ptr(), *_form(tensor), root_rank, set_id)
    return Call(_BROADCAST, name, arguments, (tensor,), lambda core: tensor, set_id)


def alltoall_call(
    tensor: torch.Tensor, splits: torch.Tensor | Sequence[int] | None, name: str | None, process_set: ProcessSet
) -> Call:
    check(tensor, "alltoall")
    set_id = process_sets.identifier(process_set)
    tensor = dense(tensor)
    if splits is None:
        given, room = (None, 0), _room(tensor, lambda rows: rows)  # a guess: another rank may send more rows
    else:
        rows = _splits(splits)
        given, room = ((c_int64 * len(rows))(*rows), len(rows)), None
    shape, ndim, dtype = _form(tensor)
    arguments = (tensor.data_ptr(), *_place(room), shape, ndim, *given, dtype, set_id)

    def result(core: int) -> tuple[torch.Tensor, torch.Tensor]:
        return _take_output(core, tensor.dtype, room), _received_splits(core)

    return Call(_ALLTOALL, name, arguments, (tensor, room), result, set_id)


def reducescatter_call(
    tensor: torch.Tensor, name: str | None, op: int, process_set: ProcessSet, prescale_factor: float, postscale_factor: float
) -> Call:
    check(tensor, "reducescatter")
    set_id = process_sets.identifier(process_set)
    tensor = dense(tensor)
    room = scattered_room(tensor, process_set)
    arguments = (tensor.data_ptr(), *_place(room), *_form(tensor), op, prescale_factor, postscale_factor, set_id)
    return Call(_REDUCESCATTER, name, arguments, (tensor, room), lambda core: _take_output(core, tensor.dtype, room), set_id)


def gathered_room(tensor: torch.Tensor, process_set: ProcessSet) -> torch.Tensor | None:
    return _room(tensor, lambda rows: rows * process_sets.size_of(process_set))  # a guess: the ranks' rows may differ


def scattered_room(tensor: torch.Tensor, process_set: ProcessSet) -> torch.Tensor | None:
    size, rank = process_sets.size_of(process_set), process_sets.rank_in(process_set)
    return _room(tensor, lambda rows: rows // size + (rank < rows % size))


def _form(tensor: torch.Tensor) -> tuple[ctypes.Array[c_int64], int, int]:
    """Shape, dimensions and dtype."""
    shape = shape_of(tensor)
    return shape, len(shape), DTYPES[tensor.dtype]


def _room(tensor: torch.Tensor, rows: Callable[[int], int]) -> torch.Tensor | None:
    """Where the library may write a result that has, of `tensor`'s rows, `rows`; None when there is no such place."""
    if tensor.dim() == 0:
        return None  # the library refuses it, with better words
    extents = (rows(tensor.shape[0]), *tensor.shape[1:])
    try:
        return torch.empty(extents, dtype=tensor.dtype)
    except RuntimeError:  # too much memory: the guess may be, and not the result
        return None


def _place(room: torch.Tensor | None) -> tuple[int | None, int]:
    """Address and bytes."""
    return (None, 0) if room is None else (room.data_ptr(), room.nbytes)


def _splits(splits: torch.Tensor | Sequence[int]) -> list[int]:
    rows = splits.tolist() if isinstance(splits, torch.Tensor) else list(splits)
    if not rows or not all(isinstance(each, int) for each in rows):
        raise ValueError(f"alltoall: splits must be one integer for each rank, not {splits!r}")
    return rows


def _received_splits(core_handle: int) -> torch.Tensor:
    splits, count = POINTER(c_int64)(), c_int32()
    basics.check(library().runjob_received_splits(core_handle, byref(splits), byref(count)))
    return torch.tensor(splits[: count.value], dtype=torch.int32)


def _take_output(core_handle: int, dtype: torch.dtype, room: torch.Tensor | None) -> torch.Tensor:
    """A tensor of our own with what the library's handle holds."""
    data, shape, ndim = c_void_p(), POINTER(c_int64)(), c_int32()
    basics.check(library().runjob_output(core_handle, byref(data), byref(shape), byref(ndim)))
    return _own(data, shape, ndim, dtype, room)


def take_output_of_group(core_handle: int, index: int, dtype: torch.dtype, room: torch.Tensor | None) -> torch.Tensor:
    """The same of one tensor of a group."""
    data, shape, ndim = c_void_p(), POINTER(c_int64)(), c_int32()
    basics.check(library().runjob_grouped_output(core_handle, index, byref(data), byref(shape), byref(ndim)))
    return _own(data, shape, ndim, dtype, room)


def _own(data, shape, ndim, dtype: torch.dtype, room: torch.Tensor | None) -> torch.Tensor:
    """`room`, where the result is there, else a copy."""
    extents = shape[: ndim.value]
    if room is not None and data.value == room.data_ptr():
        reserved = room.numel()
        if room.shape != torch.Size(extents):
            room.resize_(extents)  # not a view: autograd would refuse changes in place
        return room if 2 * room.numel() >= reserved else room.clone()  # else it would hold on to memory for nothing
    output = torch.empty(extents, dtype=dtype)
    if output.numel():
        ctypes.memmove(output.data_ptr(), data, output.numel() * output.element_size())
    return output
