"""The normalization of SyncBatchNorm on GPUs. PyTorch's kernels process a rank's part of a batch, and one allreduce in
the forward pass and one in the backward pass combine the ranks. The host does not wait for any GPU, but waits for the
ranks to agree on each allreduce.

Forward   each rank fills a row of a table: for each channel the mean and sqrt(variance + eps), then the number of its values.
Backward  each rank sends the sums of the gradients, and of the gradients times (input - mean), for each channel.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd.function import once_differentiable

from .. import process_sets
from ..process_sets import ProcessSet
from ..reduce_ops import Sum
from .operations import allreduce_


class GpuNormalization(torch.autograd.Function):
    """Normalizes as sync_batch_norm.Normalization does, with the same arguments, results and errors. A rank with less
    than two values for each channel waits for the GPU in the forward pass, because only the table contains whether all
    ranks together have two.
    """

    @staticmethod
    def forward(
        ctx: Any, input: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None,
        update: tuple[torch.Tensor, torch.Tensor, float] | None, eps: float, process_set: ProcessSet,
    ) -> torch.Tensor:  # fmt: skip
        input, channels = _in_one_piece(input), input.shape[1]
        own_values = input.numel() // channels
        table = _table(input, own_values, eps, process_set)
        counts = table[:, -1]
        if own_values < 2 and (values := float(counts.sum())) < 2:
            raise too_few(values)
        mean, scale = _merged(table, update, eps)
        ctx.save_for_backward(input, weight, mean, scale, counts.to(torch.int32))
        ctx.process_set = process_set
        return torch.batch_norm_elemt(input, weight, bias, mean, scale, eps) if input.numel() else torch.empty_like(input)

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        input, weight, mean, scale, counts = ctx.saved_tensors
        gradient = _in_one_piece(gradient)
        needs = ctx.needs_input_grad[:3]
        if input.numel():
            sums, products, of_weight, of_bias = torch.batch_norm_backward_reduce(gradient, input, mean, scale, weight, *needs)
        else:
            sums = products = torch.zeros_like(mean)
            of_weight = of_bias = sums if weight is None else torch.zeros_like(weight)
        of_input = None
        if needs[0]:
            both = allreduce_(
                torch.cat([sums, products]), name=f"sync_batch_norm.backward.{len(mean)}", op=Sum, process_set=ctx.process_set
            )
            weight = None if weight is None else weight.to(mean.dtype)
            sums, products = both.chunk(2)
            if input.numel():
                of_input = torch.batch_norm_backward_elemt(gradient, input, mean, scale, weight, sums, products, counts)
            else:
                of_input = torch.zeros_like(input)
        return of_input, of_weight if needs[1] else None, of_bias if needs[2] else None, None, None, None


def too_few(values: float) -> ValueError:
    return ValueError(f"SyncBatchNorm needs two values for each channel in training; all ranks have {values:.0f} together")


def dtype_of_statistics(input: torch.Tensor) -> torch.dtype:
    return torch.float64 if input.dtype == torch.float64 else torch.float32


def _in_one_piece(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor in one of the two layouts that the kernels take."""
    is_channels_last = tensor.dim() in (4, 5) and tensor.is_contiguous(
        memory_format=torch.channels_last if tensor.dim() == 4 else torch.channels_last_3d
    )
    return tensor if is_channels_last else tensor.contiguous()


def _table(input: torch.Tensor, values: int, eps: float, process_set: ProcessSet) -> torch.Tensor:
    """The rows of all ranks, (ranks, 2 * channels + 1). The row of a rank without values, or of one that has joined, is
    zeros.
    """
    channels = input.shape[1]
    rows, dtype = process_sets.size_of(process_set), dtype_of_statistics(input)
    table = torch.zeros(rows, 2 * channels + 1, dtype=dtype, device=input.device)
    if values:
        row = table[process_sets.rank_in(process_set)]
        mean, scale = torch.batch_norm_stats(input, eps)
        row[:channels] = mean
        torch.reciprocal(scale, out=row[channels:-1])
        row[-1] = values
    return allreduce_(table, name=f"sync_batch_norm.forward.{channels}", op=Sum, process_set=process_set)


def _merged(
    table: torch.Tensor, update: tuple[torch.Tensor, torch.Tensor, float] | None, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """The mean and 1 / sqrt(variance + eps) of all ranks' values. Updates the running statistics."""
    channels = table.shape[1] // 2
    means, scales, counts = table[:, :channels], table[:, channels:-1].reciprocal(), table[:, -1]
    counts = counts.clamp(min=torch.finfo(counts.dtype).tiny)  # the kernel divides by the number of values so far
    if update is None:
        return torch.batch_norm_gather_stats_with_counts(table, means, scales, None, None, 0.0, eps, counts)
    running_mean, running_var, momentum = update
    wide_mean, wide_var = running_mean.to(table.dtype), running_var.to(table.dtype)  # a count may be too large for 16 bits
    merged = torch.batch_norm_gather_stats_with_counts(table, means, scales, wide_mean, wide_var, momentum, eps, counts)
    if wide_mean is not running_mean:
        running_mean.copy_(wide_mean)
        running_var.copy_(wide_var)
    return merged
