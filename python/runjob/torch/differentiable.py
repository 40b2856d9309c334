"""The collectives that autograd follows: each is a torch.autograd.Function around its synchronous call, and without it that call
where no gradient is wanted.

Backward   allreduce: the same allreduce of the gradients. allgather: this rank's slice of their average.
           broadcast: their average on the root, zero elsewhere. alltoall: they go back where the rows came from.
           reducescatter: an allgather, times the number of ranks for Sum, and scaled again. All ranks must run the backward pass.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from .. import basics, process_sets, reduce_ops
from ..process_sets import ProcessSet, global_process_set
from ..reduce_ops import Average, Sum
from .compression import Compression, split
from .handles import run
from .operations import allgather_call, allreduce_call, alltoall_call, broadcast_call, reducescatter_call


class HorovodAllreduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, name, op, prescale_factor, postscale_factor, process_set, native=0):
        ctx.arguments = (op, prescale_factor, postscale_factor, process_set, native)
        return run(allreduce_call(tensor, name, *ctx.arguments))

    @staticmethod
    def backward(ctx, gradient):
        reduced = HorovodAllreduce.apply(gradient, None, *ctx.arguments)
        return (reduced,) + (None,) * 6


class HorovodAllgather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, name, process_set):
        gathered = run(allgather_call(tensor, name, process_set))
        ctx.rows = tensor.shape[0]
        ctx.process_set = process_set
        return gathered

    @staticmethod
    def backward(ctx, gradient):
        average = HorovodAllreduce.apply(gradient, None, Average, 1.0, 1.0, ctx.process_set)
        rows = run(allgather_call(torch.tensor([ctx.rows]), None, ctx.process_set))
        first = int(rows[: process_sets.rank_in(ctx.process_set)].sum())
        return average.narrow(0, first, ctx.rows), None, None


class HorovodBroadcast(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, root_rank, name, process_set):
        ctx.root_rank = root_rank
        ctx.process_set = process_set
        return run(broadcast_call(tensor, root_rank, name, process_set))

    @staticmethod
    def backward(ctx, gradient):
        average = HorovodAllreduce.apply(gradient, None, Average, 1.0, 1.0, ctx.process_set)
        if basics.rank() != ctx.root_rank:
            average = torch.zeros_like(average)
        return average, None, None, None


class HorovodAlltoall(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, splits, name, process_set):
        output, received_splits = run(alltoall_call(tensor, splits, name, process_set))
        ctx.received_splits = received_splits
        ctx.process_set = process_set
        ctx.mark_non_differentiable(received_splits)
        return output, received_splits

    @staticmethod
    def backward(ctx, gradient, _):
        returned, _ = HorovodAlltoall.apply(gradient, ctx.received_splits, None, ctx.process_set)
        return returned, None, None, None


class HorovodReducescatter(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, name, op, process_set, prescale_factor, postscale_factor):
        ctx.arguments = (op, process_set, prescale_factor, postscale_factor)
        return run(reducescatter_call(tensor, name, op, process_set, prescale_factor, postscale_factor))

    @staticmethod
    def backward(ctx, gradient):
        op, process_set, prescale_factor, postscale_factor = ctx.arguments
        factor = prescale_factor * postscale_factor * (process_sets.size_of(process_set) if op == Sum else 1)
        gathered = HorovodAllgather.apply(gradient * factor if factor != 1 else gradient, None, process_set)
        return (gathered,) + (None,) * 5


def is_followed(tensor: torch.Tensor) -> bool:
    """Whether autograd wants to know what happens to `tensor`. What is no tensor is refused later."""
    return isinstance(tensor, torch.Tensor) and tensor.requires_grad and torch.is_grad_enabled()


def allreduce(
    tensor: torch.Tensor,
    average: bool | None = None,
    name: str | None = None,
    compression: type = Compression.none,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> torch.Tensor:
    """Reduces `tensor` over the ranks; every rank gets the result, a new tensor. Differentiable.

    op  Average (the default), Sum, Min, Max, Product. `average=` is deprecated.
    Shape, dtype, Threads, Errors  as in operations.py.
    """
    op = reduce_ops.resolve(op, average)
    compression, native = split(compression)
    compressed, context = compression.compress(tensor)
    arguments = (compressed, name, op, prescale_factor, postscale_factor, process_set, native)
    reduced = HorovodAllreduce.apply(*arguments) if is_followed(compressed) else run(allreduce_call(*arguments))
    return compression.decompress(reduced, context)


def allgather(
    tensor: torch.Tensor, name: str | None = None, process_set: ProcessSet = global_process_set
) -> torch.Tensor:
    """The ranks' tensors one after the other along dimension 0, in rank order. Differentiable.

    Shape  at least one dimension; first extents may differ among ranks, the others not.
    """
    if not is_followed(tensor):
        return run(allgather_call(tensor, name, process_set))
    return HorovodAllgather.apply(tensor, name, process_set)


def broadcast(
    tensor: torch.Tensor,
    root_rank: int,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> torch.Tensor:
    """root_rank's tensor as a new tensor on every rank; the others' give shape and dtype. Differentiable."""
    if not is_followed(tensor):
        return run(broadcast_call(tensor, root_rank, name, process_set))
    return HorovodBroadcast.apply(tensor, root_rank, name, process_set)


def alltoall(
    tensor: torch.Tensor,
    splits: torch.Tensor | Sequence[int] | None = None,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
    """Sends rows of `tensor` to each rank, as alltoall_async(), and returns what has come. Differentiable.

    With `splits`, returns (what has come, how many rows came from each rank).
    """
    arguments = (tensor, splits, name, process_set)
    output, received_splits = HorovodAlltoall.apply(*arguments) if is_followed(tensor) else run(alltoall_call(*arguments))
    return output if splits is None else (output, received_splits)


def reducescatter(
    tensor: torch.Tensor,
    name: str | None = None,
    compression: type = Compression.none,
    op: int = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> torch.Tensor:
    """Reduces `tensor` over the ranks, each of which gets a part of the rows, as reducescatter_async(). Differentiable.

    Backward  defined for Sum and Average.
    """
    compressed, context = compression.compress(tensor)
    arguments = (compressed, name, reduce_ops.resolve(op, None), process_set, prescale_factor, postscale_factor)
    reduced = HorovodReducescatter.apply(*arguments) if is_followed(compressed) else run(reducescatter_call(*arguments))
    return compression.decompress(reduced, context)
