"""The collectives with gradients. Each is a torch.autograd.Function around its synchronous call, and only that call if
no gradient is needed. The functions' names and arguments are those of horovod.torch.mpi_ops.

Backward   allreduce: the same allreduce of the gradients. allgather: this rank's slice of their average.
           broadcast: their average on the root, zero elsewhere. alltoall: they go back where the rows came from.
           reducescatter: an allgather, times the number of ranks for Sum, and scaled again. All ranks must run the backward pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import torch

from .. import job, process_sets, reduce_ops
from ..calls import Reduction
from ..compression import Compressor, split
from ..handles import run
from ..process_sets import ProcessSet, global_process_set
from ..reduce_ops import Average, Sum
from .compression import NATIVE, Compression
from .operations import calls


class HorovodAllreduce(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, tensor: torch.Tensor, average: bool | None, name: str | None, op: int | None, prescale_factor: float = 1.0,
        postscale_factor: float = 1.0, process_set: ProcessSet = global_process_set,
    ) -> Any:  # fmt: skip
        op = reduce_ops.resolve(op, average)
        ctx.arguments = (op, prescale_factor, postscale_factor, process_set)
        return run(calls.allreduce(tensor, name, Reduction(*ctx.arguments)))

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        return apply(HorovodAllreduce, gradient, None, None, *ctx.arguments), None, None, None, None, None, None


class HorovodAllgather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, name: str | None, process_set: ProcessSet) -> Any:
        gathered = run(calls.allgather(tensor, name, process_set))
        ctx.rows = tensor.shape[0]
        ctx.process_set = process_set
        return gathered

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        average = _average(gradient, ctx.process_set)
        rows = run(calls.allgather(torch.tensor([ctx.rows], device="cpu"), None, ctx.process_set))
        first = int(rows[: process_sets.rank_in(ctx.process_set)].sum())
        return average.narrow(0, first, ctx.rows), None, None


class HorovodBroadcast(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, root_rank: int, name: str | None, process_set: ProcessSet) -> Any:
        ctx.root_rank = root_rank
        ctx.process_set = process_set
        return run(calls.broadcast(tensor, root_rank, name, process_set))

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        average = _average(gradient, ctx.process_set)
        if job.rank() != ctx.root_rank:
            average = torch.zeros_like(average)
        return average, None, None, None


class HorovodAlltoall(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, splits: Any, name: str | None, process_set: ProcessSet) -> Any:
        output, received_splits = run(calls.alltoall(tensor, splits, name, process_set))
        ctx.received_splits = received_splits
        ctx.process_set = process_set
        ctx.mark_non_differentiable(received_splits)
        return output, received_splits

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor, _: torch.Tensor) -> Any:
        returned, _ = apply(HorovodAlltoall, gradient, ctx.received_splits, None, ctx.process_set)
        return returned, None, None, None


class HorovodReducescatter(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, tensor: torch.Tensor, name: str | None, op: int, process_set: ProcessSet = global_process_set,
        prescale_factor: float = 1.0, postscale_factor: float = 1.0,
    ) -> Any:  # fmt: skip
        ctx.reduction = Reduction(reduce_ops.resolve(op, None), prescale_factor, postscale_factor, process_set)
        return run(calls.reducescatter(tensor, name, ctx.reduction))

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        factor = scattered_factor(ctx.reduction)
        scaled = gradient * factor if factor != 1 else gradient
        return apply(HorovodAllgather, scaled, None, ctx.reduction.process_set), None, None, None, None, None


def apply(function: type[torch.autograd.Function], *arguments: Any) -> Any:
    return function.apply(*arguments)


def _average(gradient: torch.Tensor, process_set: ProcessSet) -> torch.Tensor:
    average: torch.Tensor = apply(HorovodAllreduce, gradient, None, None, Average, 1.0, 1.0, process_set)
    return average


def scattered_factor(reduction: Reduction) -> float:
    """The factor of a reducescatter's gradients."""
    ranks = process_sets.size_of(reduction.process_set) if reduction.op == Sum else 1
    return reduction.prescale_factor * reduction.postscale_factor * ranks


def is_followed(tensor: torch.Tensor) -> bool:
    """True if autograd records operations on `tensor`. False for a value that is not a tensor, which is refused later."""
    return isinstance(tensor, torch.Tensor) and tensor.requires_grad and torch.is_grad_enabled()


def allreduce(
    tensor: torch.Tensor,
    average: bool | None = None,
    name: str | None = None,
    compression: type[Compressor] = Compression.none,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> torch.Tensor:
    """Reduces `tensor` over the ranks; every rank gets the result, a new tensor. Differentiable.

    op  Average (the default), Sum, Adasum, Min, Max, Product. `average=` is deprecated.
    Shape, dtype  any; those of the result are the same. Threads  any.
    Errors  ValueError for arguments that can never work; HorovodInternalError and its kinds, MismatchError when
            the ranks disagree.
    """
    op = reduce_ops.resolve(op, average)
    if is_followed(tensor):
        compressed, context = compression.compress(tensor)
        reduced = apply(HorovodAllreduce, compressed, None, name, op, prescale_factor, postscale_factor, process_set)
    else:
        compression, native = split(compression, NATIVE)
        compressed, context = compression.compress(tensor)
        reduced = run(calls.allreduce(compressed, name, Reduction(op, prescale_factor, postscale_factor, process_set, native)))
    output: torch.Tensor = compression.decompress(reduced, context)
    return output


def allgather(
    tensor: torch.Tensor, name: str | None = None, process_set: ProcessSet = global_process_set
) -> torch.Tensor:
    """Concatenates the ranks' tensors along dimension 0, in rank order. Differentiable.

    Shape   at least one dimension; first extents may differ among ranks, the others not.
    dtype   any, the same on all ranks.
    Errors  as allreduce().
    """
    if not is_followed(tensor):
        return cast(torch.Tensor, run(calls.allgather(tensor, name, process_set)))
    return cast(torch.Tensor, apply(HorovodAllgather, tensor, name, process_set))


def broadcast(
    tensor: torch.Tensor,
    root_rank: int,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> torch.Tensor:
    """Sends root_rank's tensor to every rank, as a new tensor. The tensors of the other ranks give shape and dtype.
    Differentiable.

    root_rank  a rank of the job, also with a process set, which has to include it.
    Errors     as allreduce().
    """
    if not is_followed(tensor):
        return cast(torch.Tensor, run(calls.broadcast(tensor, root_rank, name, process_set)))
    return cast(torch.Tensor, apply(HorovodBroadcast, tensor, root_rank, name, process_set))


def alltoall(
    tensor: torch.Tensor,
    splits: torch.Tensor | Sequence[int] | None = None,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
    """Sends rows of `tensor` to each rank, as alltoall_async(), and returns the received rows. Differentiable.

    With `splits`, returns (the received rows, the number of rows from each rank).
    Errors  as allreduce(); ValueError for splits that do not fit.
    """
    arguments = (tensor, splits, name, process_set)
    output, received_splits = apply(HorovodAlltoall, *arguments) if is_followed(tensor) else run(calls.alltoall(*arguments))
    return output if splits is None else (output, received_splits)


def reducescatter(
    tensor: torch.Tensor,
    name: str | None = None,
    compression: type[Compressor] = Compression.none,
    op: int = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> torch.Tensor:
    """Reduces `tensor` over the ranks, each of which gets a part of the rows, as reducescatter_async(). Differentiable.

    Backward  defined for Sum and Average.
    Errors    as allreduce(); ValueError for a scalar.
    """
    compressed, context = compression.compress(tensor)
    if is_followed(compressed):
        reduced = apply(HorovodReducescatter, compressed, name, op, process_set, prescale_factor, postscale_factor)
    else:
        reduction = Reduction(reduce_ops.resolve(op, None), prescale_factor, postscale_factor, process_set)
        reduced = run(calls.reducescatter(compressed, name, reduction))
    output: torch.Tensor = compression.decompress(reduced, context)
    return output
