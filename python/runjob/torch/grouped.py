"""The collectives on lists of tensors: the i-th output is what the operation of the single form makes of the i-th tensor.

A list is one operation of the library, submitted in one call, with one name and one handle: it runs when all ranks have submitted
it, and fails as a whole. synchronize() returns the list of outputs.

Names    `grouped_<operation>.<name>`; the name may be missing, as a single operation's may. All ranks have the same number of
         tensors in the same order. Messages call the i-th of n tensors `<name>_<i>of<n>`, i from 1.
Shape, dtype, Threads  of each tensor as in operations.py. dtypes may differ among the tensors of a list.
Backward as in differentiable.py, also grouped. Tensors that are not of floating point have no gradient.
Errors   ValueError for an empty list and for what can never work, before anything is submitted.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Iterator, Sequence
from ctypes import POINTER, c_int64

import torch

from .. import process_sets, reduce_ops
from .._library import Tensor
from ..exceptions import InvalidArgumentError
from ..process_sets import ProcessSet, global_process_set
from ..reduce_ops import Average, Sum
from . import handles
from .compression import Compression, split
from .differentiable import is_followed
from .handles import Call, Collective, run
from .operations import allgather_call, gathered_room, scattered_room, take_output_of_group
from .tensors import DTYPES, check, check_in_place, dense, shape_of

_ALLREDUCE, _ALLGATHER, _REDUCESCATTER = map(Collective, ("grouped_allreduce", "grouped_allgather", "grouped_reducescatter"))


def grouped_allreduce_async(
    tensors: Sequence[torch.Tensor],
    average: bool | None = None,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Starts allreduce_async() of each tensor, into new ones; returns the handle of all."""
    op = reduce_ops.resolve(op, average)
    return handles.start(_allreduce_group(tensors, name, op, prescale_factor, postscale_factor, process_set))


def grouped_allreduce_async_(
    tensors: Sequence[torch.Tensor],
    average: bool | None = None,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> int:
    """grouped_allreduce_async() in place: `tensors` must not be touched until synchronize(handle) returns them."""
    op = reduce_ops.resolve(op, average)
    return handles.start(_allreduce_group_(tensors, name, op, prescale_factor, postscale_factor, process_set))


def grouped_allreduce_(
    tensors: Sequence[torch.Tensor],
    average: bool | None = None,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> list[torch.Tensor]:
    """grouped_allreduce_async_(), waited for. Returns `tensors`, as a list."""
    op = reduce_ops.resolve(op, average)
    return run(_allreduce_group_(tensors, name, op, prescale_factor, postscale_factor, process_set))


def grouped_allreduce(
    tensors: Sequence[torch.Tensor],
    average: bool | None = None,
    name: str | None = None,
    compression: type = Compression.none,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> list[torch.Tensor]:
    """allreduce() of each tensor. Differentiable."""
    op = reduce_ops.resolve(op, average)
    compression, native = split(compression)
    compressed, contexts = _compress(compression, tensors, "grouped_allreduce")
    arguments = (name, op, prescale_factor, postscale_factor, process_set, native)
    if any(map(is_followed, compressed)):
        reduced = HorovodGroupedAllreduce.apply(*arguments, *compressed)
    else:
        reduced = run(_allreduce_group(compressed, *arguments))
    return list(map(compression.decompress, reduced, contexts))


def grouped_allgather_async(
    tensors: Sequence[torch.Tensor], name: str | None = None, process_set: ProcessSet = global_process_set
) -> int:
    """Starts allgather_async() of each tensor; returns the handle of all."""
    return handles.start(_allgather_group(tensors, name, process_set))


def grouped_allgather(
    tensors: Sequence[torch.Tensor], name: str | None = None, process_set: ProcessSet = global_process_set
) -> list[torch.Tensor]:
    """allgather() of each tensor. Differentiable."""
    tensors = _listed(tensors, "grouped_allgather")
    if any(map(is_followed, tensors)):
        return list(HorovodGroupedAllgather.apply(name, process_set, *tensors))
    return run(_allgather_group(tensors, name, process_set))


def grouped_reducescatter_async(
    tensors: Sequence[torch.Tensor],
    name: str | None = None,
    op: int = reduce_ops.Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> int:
    """Starts reducescatter_async() of each tensor; returns the handle of all."""
    op = reduce_ops.resolve(op, None)
    return handles.start(_reducescatter_group(tensors, name, op, process_set, prescale_factor, postscale_factor))


def grouped_reducescatter(
    tensors: Sequence[torch.Tensor],
    name: str | None = None,
    compression: type = Compression.none,
    op: int = reduce_ops.Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> list[torch.Tensor]:
    """reducescatter() of each tensor. Differentiable.

    Backward  defined for Sum and Average.
    """
    compressed, contexts = _compress(compression, tensors, "grouped_reducescatter")
    arguments = (name, reduce_ops.resolve(op, None), process_set, prescale_factor, postscale_factor)
    if any(map(is_followed, compressed)):
        reduced = HorovodGroupedReducescatter.apply(*arguments, *compressed)
    else:
        reduced = run(_reducescatter_group(compressed, *arguments))
    return list(map(compression.decompress, reduced, contexts))


class HorovodGroupedAllreduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx, name, op, prescale_factor, postscale_factor, process_set, native, *tensors):
        ctx.arguments = (op, prescale_factor, postscale_factor, process_set, native)
        return tuple(run(_allreduce_group(tensors, name, *ctx.arguments)))

    @staticmethod
    def backward(ctx, *gradients):
        reduced = iter(HorovodGroupedAllreduce.apply(None, *ctx.arguments, *_floats(gradients)))
        return (None,) * 6 + _in_place_of_floats(gradients, reduced)


class HorovodGroupedAllgather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, name, process_set, *tensors):
        gathered = run(_allgather_group(tensors, name, process_set))
        ctx.rows = [tensor.shape[0] for tensor in tensors]
        ctx.process_set = process_set
        return tuple(gathered)

    @staticmethod
    def backward(ctx, *gradients):
        averages = iter(HorovodGroupedAllreduce.apply(None, Average, 1.0, 1.0, ctx.process_set, 0, *_floats(gradients)))
        rows = run(allgather_call(torch.tensor([ctx.rows]), None, ctx.process_set))
        firsts = rows[: process_sets.rank_in(ctx.process_set)].sum(dim=0).tolist()
        averages = _in_place_of_floats(gradients, averages)
        slices = zip(averages, firsts, ctx.rows)
        return None, None, *(None if each is None else each.narrow(0, first, count) for each, first, count in slices)


class HorovodGroupedReducescatter(torch.autograd.Function):
    @staticmethod
    def forward(ctx, name, op, process_set, prescale_factor, postscale_factor, *tensors):
        ctx.arguments = (op, process_set, prescale_factor, postscale_factor)
        return tuple(run(_reducescatter_group(tensors, name, *ctx.arguments)))

    @staticmethod
    def backward(ctx, *gradients):
        op, process_set, prescale_factor, postscale_factor = ctx.arguments
        factor = prescale_factor * postscale_factor * (process_sets.size_of(process_set) if op == Sum else 1)
        scaled = [each * factor if factor != 1 else each for each in _floats(gradients)]
        gathered = iter(HorovodGroupedAllgather.apply(None, process_set, *scaled))
        return (None,) * 5 + _in_place_of_floats(gradients, gathered)


def _floats(gradients: Iterable[torch.Tensor]) -> list[torch.Tensor]:
    """Those that mean something; the others are zeros in an integer type. There is at least one, and all ranks have the same."""
    return [each for each in gradients if each.is_floating_point()]


def _in_place_of_floats(gradients: Iterable[torch.Tensor], results: Iterator[torch.Tensor]) -> tuple[torch.Tensor | None, ...]:
    return tuple(next(results) if each.is_floating_point() else None for each in gradients)


def _compress(compression: type, tensors: Sequence[torch.Tensor], operation: str) -> tuple[Sequence, Sequence]:
    """What is sent, and the contexts."""
    compressed, contexts = zip(*map(compression.compress, _listed(tensors, operation)))
    return compressed, contexts


# The groups: all that can be refused is, here.


def _group(
    kind: Collective,
    name: str | None,
    tensors: list[torch.Tensor],
    rooms: Sequence[torch.Tensor | None],
    arguments: tuple,
    result: Callable[[int], list[torch.Tensor]],
) -> Call:
    """`rooms`: where the outputs go, if they fit. `arguments`: the library's, after the tensors; the last is the process set."""
    described = (Tensor * len(tensors))(*map(_described, tensors, rooms))
    return Call(kind, name, (described, len(tensors), *arguments), (*tensors, *rooms), result, arguments[-1])


def _described(tensor: torch.Tensor, room: torch.Tensor | None) -> tuple:
    shape = shape_of(tensor)
    place = (None, 0) if room is None else (room.data_ptr(), room.nbytes)
    return (tensor.data_ptr(), *place, ctypes.cast(shape, POINTER(c_int64)), len(shape), DTYPES[tensor.dtype])


def _allreduce_group(
    tensors: Sequence[torch.Tensor],
    name: str | None,
    op: int,
    prescale_factor: float,
    postscale_factor: float,
    process_set: ProcessSet,
    native: int = 0,
) -> Call:
    tensors = _listed(tensors, "grouped_allreduce")
    for tensor in tensors:
        check(tensor, "allreduce")
    tensors = list(map(dense, tensors))
    return _reduction(tensors, list(map(torch.empty_like, tensors)), name, op, prescale_factor, postscale_factor, process_set, native)


def _allreduce_group_(
    tensors: Sequence[torch.Tensor],
    name: str | None,
    op: int,
    prescale_factor: float,
    postscale_factor: float,
    process_set: ProcessSet,
) -> Call:
    tensors = _listed(tensors, "grouped_allreduce_")
    if len(set(map(id, tensors))) != len(tensors):
        raise ValueError("grouped_allreduce_ works in place, and the list has one tensor twice")
    for tensor in tensors:
        check_in_place(tensor, "allreduce_")
    return _reduction(tensors, tensors, name, op, prescale_factor, postscale_factor, process_set, 0)


def _reduction(tensors, outputs, name, op, prescale_factor, postscale_factor, process_set, native) -> Call:
    set_id = process_sets.identifier(process_set)
    _check_reduction(tensors, "grouped_allreduce", op, prescale_factor, postscale_factor)
    arguments = (op, prescale_factor, postscale_factor, native, set_id)
    return _group(_ALLREDUCE, name, tensors, outputs, arguments, lambda core: outputs)


def _allgather_group(tensors: Sequence[torch.Tensor], name: str | None, process_set: ProcessSet) -> Call:
    tensors = _listed(tensors, "grouped_allgather")
    for tensor in tensors:
        check(tensor, "allgather")
    set_id = process_sets.identifier(process_set)
    _check_rows(tensors, "grouped_allgather")
    tensors = list(map(dense, tensors))
    rooms = [gathered_room(tensor, process_set) for tensor in tensors]
    return _group(_ALLGATHER, name, tensors, rooms, (set_id,), _outputs(tensors, rooms))


def _reducescatter_group(
    tensors: Sequence[torch.Tensor],
    name: str | None,
    op: int,
    process_set: ProcessSet,
    prescale_factor: float,
    postscale_factor: float,
) -> Call:
    tensors = _listed(tensors, "grouped_reducescatter")
    for tensor in tensors:
        check(tensor, "reducescatter")
    set_id = process_sets.identifier(process_set)
    _check_rows(tensors, "grouped_reducescatter")
    _check_reduction(tensors, "grouped_reducescatter", op, prescale_factor, postscale_factor)
    tensors = list(map(dense, tensors))
    rooms = [scattered_room(tensor, process_set) for tensor in tensors]
    return _group(
        _REDUCESCATTER, name, tensors, rooms, (op, prescale_factor, postscale_factor, set_id), _outputs(tensors, rooms)
    )


def _outputs(
    tensors: list[torch.Tensor], rooms: list[torch.Tensor | None]
) -> Callable[[int], list[torch.Tensor]]:
    def take(core: int) -> list[torch.Tensor]:
        return [
            take_output_of_group(core, index, tensor.dtype, room)
            for index, (tensor, room) in enumerate(zip(tensors, rooms))
        ]

    return take


def _listed(tensors: Sequence[torch.Tensor], operation: str) -> list[torch.Tensor]:
    if isinstance(tensors, torch.Tensor):
        raise ValueError(f"{operation} takes a list of tensors, not one tensor")
    listed = list(tensors)
    if not listed:
        raise ValueError(f"{operation} takes at least one tensor; the list is empty")
    return listed


# What the library refuses too, here in words of a list.


def _check_rows(tensors: list[torch.Tensor], operation: str) -> None:
    for index, tensor in enumerate(tensors):
        if tensor.dim() == 0:
            raise InvalidArgumentError(f"{operation}: tensor {index} of the list is a scalar, without a first dimension")


def _check_reduction(
    tensors: list[torch.Tensor], operation: str, op: int, prescale_factor: float, postscale_factor: float
) -> None:
    if op != Average and prescale_factor == 1 and postscale_factor == 1:
        return
    for index, tensor in enumerate(tensors):
        if tensor.dtype == torch.bool:
            raise InvalidArgumentError(f"{operation}: tensor {index} of the list is bool, which cannot be averaged or scaled")
