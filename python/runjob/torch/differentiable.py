"""The collectives that autograd follows: each is a torch.autograd.Function around its asynchronous form.

Backward   allreduce: the same allreduce of the gradients. allgather: this rank's slice of their average.
           broadcast: their average on the root, zero elsewhere. All ranks must run the backward pass.
"""

from __future__ import annotations

import torch

from .. import basics, reduce_ops
from ..process_sets import GlobalProcessSet, global_process_set
from ..reduce_ops import Average
from .compression import Compression
from .handles import synchronize
from .operations import allgather_async, allreduce_async, broadcast_async


class HorovodAllreduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, name, op, prescale_factor, postscale_factor, process_set):
        ctx.arguments = (op, prescale_factor, postscale_factor, process_set)
        return synchronize(allreduce_async(tensor, None, name, op, prescale_factor, postscale_factor, process_set))

    @staticmethod
    def backward(ctx, gradient):
        op, prescale_factor, postscale_factor, process_set = ctx.arguments
        reduced = HorovodAllreduce.apply(gradient, None, op, prescale_factor, postscale_factor, process_set)
        return (reduced,) + (None,) * 5


class HorovodAllgather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, name, process_set):
        gathered = synchronize(allgather_async(tensor, name, process_set))
        ctx.rows = tensor.shape[0]
        ctx.process_set = process_set
        return gathered

    @staticmethod
    def backward(ctx, gradient):
        average = HorovodAllreduce.apply(gradient, None, Average, 1.0, 1.0, ctx.process_set)
        rows = synchronize(allgather_async(torch.tensor([ctx.rows]), None, ctx.process_set))
        first = int(rows[: basics.rank()].sum())
        return average.narrow(0, first, ctx.rows), None, None


class HorovodBroadcast(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, root_rank, name, process_set):
        ctx.root_rank = root_rank
        ctx.process_set = process_set
        return synchronize(broadcast_async(tensor, root_rank, name, process_set))

    @staticmethod
    def backward(ctx, gradient):
        average = HorovodAllreduce.apply(gradient, None, Average, 1.0, 1.0, ctx.process_set)
        if basics.rank() != ctx.root_rank:
            average = torch.zeros_like(average)
        return average, None, None, None


def allreduce(
    tensor: torch.Tensor,
    average: bool | None = None,
    name: str | None = None,
    compression: type = Compression.none,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: GlobalProcessSet = global_process_set,
) -> torch.Tensor:
    """Reduces `tensor` over the ranks; every rank gets the result, a new tensor. Differentiable.

    op  Average (the default), Sum, Min, Max, Product. `average=` is deprecated.
    Shape, dtype, Threads, Errors  as in operations.py.
    """
    op = reduce_ops.resolve(op, average)
    compressed, context = compression.compress(tensor)
    reduced = HorovodAllreduce.apply(compressed, name, op, prescale_factor, postscale_factor, process_set)
    return compression.decompress(reduced, context)


def allgather(
    tensor: torch.Tensor, name: str | None = None, process_set: GlobalProcessSet = global_process_set
) -> torch.Tensor:
    """The ranks' tensors one after the other along dimension 0, in rank order. Differentiable.

    Shape  at least one dimension; first extents may differ among ranks, the others not.
    """
    return HorovodAllgather.apply(tensor, name, process_set)


def broadcast(
    tensor: torch.Tensor,
    root_rank: int,
    name: str | None = None,
    process_set: GlobalProcessSet = global_process_set,
) -> torch.Tensor:
    """root_rank's tensor as a new tensor on every rank; the others' give shape and dtype. Differentiable."""
    return HorovodBroadcast.apply(tensor, root_rank, name, process_set)
