"""The collectives of grouped.py for lists of tensors. Those with gradients are like the ones that differentiable.py has
for single tensors.

Backward  as in differentiable.py, also grouped. Tensors that do not have a floating-point dtype have no gradient.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

import torch

from .. import process_sets, reduce_ops
from ..calls import Reduction
from ..compression import Compressor, split
from ..grouped import GroupedOperations
from ..handles import run
from ..process_sets import ProcessSet, global_process_set
from ..reduce_ops import Average
from .compression import NATIVE, Compression
from .differentiable import apply, is_followed, scattered_factor
from .operations import calls
from .placement import PlacedGroups

#: The groups for run(), for the other modules of this package.
groups = PlacedGroups(calls)
_operations: GroupedOperations[torch.Tensor, torch.Tensor] = GroupedOperations(groups, NATIVE)

grouped_allreduce_ = _operations.grouped_allreduce_
grouped_allreduce_async = _operations.grouped_allreduce_async
grouped_allreduce_async_ = _operations.grouped_allreduce_async_
grouped_allgather_async = _operations.grouped_allgather_async
grouped_reducescatter_async = _operations.grouped_reducescatter_async


def grouped_allreduce(
    tensors: Sequence[torch.Tensor],
    average: bool | None = None,
    name: str | None = None,
    compression: type[Compressor] = Compression.none,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> list[torch.Tensor]:
    """Reduces each tensor as allreduce(), all as one operation. Returns a list of new tensors. Differentiable.

    Shape, dtype  any; they may differ among the tensors of the list, not among ranks.
    Errors        as allreduce(), and ValueError for an empty list.
    """
    op = reduce_ops.resolve(op, average)
    tensors = groups.listed(tensors, "grouped_allreduce")
    if any(map(is_followed, tensors)):
        compressed, contexts = _compress(compression, tensors)
        arguments = (None, name, op, prescale_factor, postscale_factor, process_set)
        reduced = apply(HorovodGroupedAllreduce, *arguments, *compressed)
    else:
        compression, native = split(compression, NATIVE)
        compressed, contexts = _compress(compression, tensors)
        reduced = run(groups.allreduce(compressed, name, Reduction(op, prescale_factor, postscale_factor, process_set, native)))
    return list(map(compression.decompress, reduced, contexts))


def grouped_allgather(
    tensors: Sequence[torch.Tensor], name: str | None = None, process_set: ProcessSet = global_process_set
) -> list[torch.Tensor]:
    """Gathers each tensor as allgather(), all as one operation. Returns a list of new tensors. Differentiable.

    Errors  as allgather(), and ValueError for an empty list.
    """
    tensors = groups.listed(tensors, "grouped_allgather")
    if any(map(is_followed, tensors)):
        return list(apply(HorovodGroupedAllgather, name, process_set, *tensors))
    return cast("list[torch.Tensor]", run(groups.allgather(tensors, name, process_set)))


def grouped_reducescatter(
    tensors: Sequence[torch.Tensor],
    name: str | None = None,
    compression: type[Compressor] = Compression.none,
    op: int = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> list[torch.Tensor]:
    """Reduces and scatters each tensor as reducescatter(), all as one operation. Returns a list of new tensors.
    Differentiable.

    Backward  defined for Sum and Average.
    Errors    as reducescatter(), and ValueError for an empty list.
    """
    compressed, contexts = _compress(compression, groups.listed(tensors, "grouped_reducescatter"))
    if any(map(is_followed, compressed)):
        arguments = (name, op, process_set, prescale_factor, postscale_factor)
        reduced = apply(HorovodGroupedReducescatter, *arguments, *compressed)
    else:
        reduction = Reduction(reduce_ops.resolve(op, None), prescale_factor, postscale_factor, process_set)
        reduced = run(groups.reducescatter(compressed, name, reduction))
    return list(map(compression.decompress, reduced, contexts))


class HorovodGroupedAllreduce(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, average: bool | None, name: str | None, op: int | None, prescale_factor: float, postscale_factor: float,
        process_set: ProcessSet, *tensors: torch.Tensor,
    ) -> Any:  # fmt: skip
        ctx.arguments = (reduce_ops.resolve(op, average), prescale_factor, postscale_factor, process_set)
        return tuple(run(groups.allreduce(tensors, name, Reduction(*ctx.arguments))))

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        reduced = iter(apply(HorovodGroupedAllreduce, None, None, *ctx.arguments, *_floats(gradients)))
        return (*[None] * 6, *_in_place_of_floats(gradients, reduced))


class HorovodGroupedAllgather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, name: str | None, process_set: ProcessSet, *tensors: torch.Tensor) -> Any:
        gathered = run(groups.allgather(tensors, name, process_set))
        ctx.rows = [tensor.shape[0] for tensor in tensors]
        ctx.process_set = process_set
        return tuple(gathered)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        arguments = (None, None, Average, 1.0, 1.0, ctx.process_set)
        averages = iter(apply(HorovodGroupedAllreduce, *arguments, *_floats(gradients)))
        rows = run(calls.allgather(torch.tensor([ctx.rows], device="cpu"), None, ctx.process_set))
        firsts = rows[: process_sets.rank_in(ctx.process_set)].sum(dim=0).tolist()
        slices = zip(_in_place_of_floats(gradients, averages), firsts, ctx.rows)
        return None, None, *(None if each is None else each.narrow(0, first, count) for each, first, count in slices)


class HorovodGroupedReducescatter(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, name: str | None, op: int, process_set: ProcessSet, prescale_factor: float, postscale_factor: float,
        *tensors: torch.Tensor,
    ) -> Any:  # fmt: skip
        ctx.reduction = Reduction(reduce_ops.resolve(op, None), prescale_factor, postscale_factor, process_set)
        return tuple(run(groups.reducescatter(tensors, name, ctx.reduction)))

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        factor = scattered_factor(ctx.reduction)
        scaled = [each * factor if factor != 1 else each for each in _floats(gradients)]
        gathered = iter(apply(HorovodGroupedAllgather, None, ctx.reduction.process_set, *scaled))
        return (*[None] * 5, *_in_place_of_floats(gradients, gathered))


def _floats(gradients: Iterable[torch.Tensor]) -> list[torch.Tensor]:
    """The gradients with a floating-point dtype; the others are zeros of an integer type. There is at least one, and
    all ranks have the same ones.
    """
    return [each for each in gradients if each.is_floating_point()]


def _in_place_of_floats(gradients: Iterable[torch.Tensor], results: Iterator[torch.Tensor]) -> tuple[torch.Tensor | None, ...]:
    return tuple(next(results) if each.is_floating_point() else None for each in gradients)


def _compress(compression: type[Compressor], tensors: Sequence[torch.Tensor]) -> tuple[list[torch.Tensor], list[Any]]:
    """The tensors to send, and the contexts for decompress()."""
    pairs = [compression.compress(tensor) for tensor in tensors]
    return [compressed for compressed, _ in pairs], [context for _, context in pairs]
