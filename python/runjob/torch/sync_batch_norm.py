"""Batch normalization over the batches of all ranks: one allreduce in the forward pass, and one in the backward pass.
On GPUs gpu_batch_norm.py replaces the computation that is described here.

Forward   each rank sends its count, mean and sum of squared deviations, and all ranks merge them. Sums of squares would lose the
          variance of values whose mean is large.
Backward  each rank sends the sums of the gradients, and of the gradients times the normalized input, for each channel.
Source    Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", 1979.
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import torch
from torch.autograd.function import once_differentiable
from torch.nn.modules.batchnorm import _BatchNorm

from .. import process_sets
from ..process_sets import ProcessSet, global_process_set
from ..reduce_ops import Sum
from . import gpus
from .gpu_batch_norm import GpuNormalization, dtype_of_statistics, too_few
from .operations import allreduce_

#: The gradient of the input takes several passes over its memory. A piece of this size stays in the processor's cache.
_PIECE_BYTES = 1 << 20


class SyncBatchNorm(_BatchNorm):
    """torch.nn.BatchNorm1d, 2d and 3d with the mean and variance of all ranks' batches, for tensors on any device.

    Shape   (N, C, ...); N may differ among ranks and may be 0. dtypes are those of torch.nn.BatchNorm2d.
    Blocks  forward() in training and backward() wait for all ranks of `process_set`, which call them in the same order. A rank
            outside of the set normalizes its own batch.
    Errors  ValueError when all ranks together have less than two values for each channel, and for a set that is not registered;
            allreduce()'s.
    """

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
        track_running_stats: bool = True, device: Any = None, dtype: Any = None, process_set: ProcessSet = global_process_set,
    ) -> None:  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype)
        self.process_set = process_set

    @classmethod
    def convert_sync_batchnorm(cls, module: torch.nn.Module, process_set: ProcessSet = global_process_set) -> torch.nn.Module:
        """`module` with every BatchNorm layer in it replaced by a SyncBatchNorm that has its parameters, buffers and mode. The
        result is `module` itself unless that is such a layer. Optimizers may be created before or after it.
        """
        if isinstance(module, _BatchNorm) and not isinstance(module, (cls, torch.nn.modules.lazy.LazyModuleMixin)):
            return cls._converted(module, process_set)
        for name, child in module.named_children():
            converted = cls.convert_sync_batchnorm(child, process_set)
            if converted is not child:
                setattr(module, name, converted)
        return module

    @classmethod
    def _converted(cls, layer: _BatchNorm, process_set: ProcessSet) -> SyncBatchNorm:
        converted = cls(
            layer.num_features, layer.eps, layer.momentum, layer.affine, layer.track_running_stats, "meta", process_set=process_set
        )
        for name, parameter in layer.named_parameters(recurse=False):
            setattr(converted, name, parameter)
        for name, buffer in layer.named_buffers(recurse=False):
            setattr(converted, name, buffer)
        return converted.train(layer.training)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """`input`, normalized: in training with the statistics of all ranks, otherwise with the running ones."""
        if input.dim() < 2 or input.shape[1] != self.num_features:
            raise ValueError(f"SyncBatchNorm({self.num_features}) takes (N, {self.num_features}, ...), not {tuple(input.shape)}")
        momentum = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats:
            self.num_batches_tracked.add_(1)  # type: ignore[operator, union-attr]
            if self.momentum is None:  # the average of all batches
                momentum = 1.0 / float(self.num_batches_tracked)  # type: ignore[arg-type]
        running = (self.running_mean, self.running_var) if not self.training or self.track_running_stats else (None, None)
        uses_batch = self.training or running[0] is None
        if not uses_batch or process_sets.size_of(self.process_set) == 1 or not self.process_set.included():
            return torch.nn.functional.batch_norm(input, *running, self.weight, self.bias, uses_batch, momentum, self.eps)
        update = (*running, momentum) if running[0] is not None else None
        normalization = GpuNormalization if gpus.is_on_gpu(input) else Normalization
        output = normalization.apply(input, self.weight, self.bias, update, self.eps, self.process_set)  # type: ignore[no-untyped-call]
        return cast(torch.Tensor, output)


class _Statistics(NamedTuple):
    """The statistics of a batch: the number of values for each channel; and for each channel their mean and sum of
    squared deviations, as float64 in the CPU's memory.
    """

    values: float
    mean: torch.Tensor
    deviation: torch.Tensor


class Normalization(torch.autograd.Function):
    """`input` normalized with the statistics of all ranks' batches, scaled by `weight` and shifted by `bias`. `update`
    has the running mean and variance, which are changed in place, and the weight of the batch in them. Errors  as
    SyncBatchNorm.
    """

    @staticmethod
    def forward(
        ctx: Any, input: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None,
        update: tuple[torch.Tensor, torch.Tensor, float] | None, eps: float, process_set: ProcessSet,
    ) -> torch.Tensor:  # fmt: skip
        merged = _merge(_statistics(input), process_set)
        if merged.values < 2:
            raise too_few(merged.values)
        if update is not None:
            _update(merged, *update)
        variance = merged.deviation / merged.values
        form = (input.device, dtype_of_statistics(input))
        mean, scale = merged.mean.to(*form), (variance + eps).rsqrt().to(*form)
        ctx.save_for_backward(input, weight, mean, scale)
        ctx.count, ctx.process_set = merged.values, process_set
        weight, bias = _beside_statistics(input, weight), _beside_statistics(input, bias)
        return torch.nn.functional.batch_norm(input, mean, variance.to(*form), weight, bias, False, 0.0, eps)

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        input, weight, mean, scale = ctx.saved_tensors
        of_weight, of_bias = _sums(gradient, input, mean, scale)
        of_input = None
        if ctx.needs_input_grad[0]:
            both = torch.stack([of_weight, of_bias]).to("cpu", torch.float64)
            both = allreduce_(both, name=f"sync_batch_norm.backward.{len(mean)}", op=Sum, process_set=ctx.process_set) / ctx.count
            mean_of_product, mean_of_gradient = both.to(mean.device, mean.dtype)
            factor = scale if weight is None else scale * weight.to(scale.dtype)
            of_input = _gradient_of_input(gradient, input, mean, mean_of_product * scale, mean_of_gradient, factor)
        needs_weight, needs_bias = ctx.needs_input_grad[1:3]
        dtype = of_weight.dtype if weight is None else weight.dtype
        return (
            of_input, of_weight.to(dtype) if needs_weight else None, of_bias.to(dtype) if needs_bias else None, None, None, None,
        )  # fmt: skip


def _beside_statistics(input: torch.Tensor, parameter: torch.Tensor | None) -> torch.Tensor | None:
    """The parameter in the dtype of the statistics. With an input of 16 bits PyTorch's kernel takes parameters and
    statistics of one dtype, and the statistics are float32.
    """
    is_short = parameter is not None and parameter.dtype == input.dtype and input.dtype in (torch.bfloat16, torch.float16)
    return parameter.float() if parameter is not None and is_short else parameter


def _statistics(input: torch.Tensor) -> _Statistics:
    count, channels = input.numel() // input.shape[1], input.shape[1]
    if count == 0:
        nothing = torch.zeros(channels, dtype=torch.float64, device="cpu")
        return _Statistics(0.0, nothing, nothing)
    unused = torch.zeros(channels, device=input.device, dtype=dtype_of_statistics(input))  # sets the dtype of the results
    results = torch.batch_norm_update_stats(input, unused, unused.clone(), 0.0)
    mean, variance = (each.to("cpu", torch.float64) for each in results)
    return _Statistics(float(count), mean, variance * count)


def _merge(own: _Statistics, process_set: ProcessSet) -> _Statistics:
    """The statistics of all ranks' batches as one. Each rank fills a row of a table. A rank that has joined adds zeros,
    so its row does not count.
    """
    channels = len(own.mean)
    table = torch.zeros(process_sets.size_of(process_set), 1 + 2 * channels, dtype=torch.float64, device="cpu")
    row = table[process_sets.rank_in(process_set)]
    row[0], row[1 : 1 + channels], row[1 + channels :] = own.values, own.mean, own.deviation
    table = allreduce_(table, name=f"sync_batch_norm.forward.{channels}", op=Sum, process_set=process_set)
    counts, means, deviations = table[:, :1], table[:, 1 : 1 + channels], table[:, 1 + channels :]
    count = counts.sum()
    mean = (counts * means).sum(0) / count
    deviation = deviations.sum(0) + (counts * (means - mean).square()).sum(0)
    return _Statistics(float(count), mean, deviation)


def _update(batch: _Statistics, running_mean: torch.Tensor, running_var: torch.Tensor, momentum: float) -> None:
    unbiased = batch.deviation / (batch.values - 1)
    for running, own in ((running_mean, batch.mean), (running_var, unbiased)):
        if running.dtype in (torch.bfloat16, torch.float16):  # rounded once
            running.copy_(running.float().lerp_(own.to(running.device, torch.float32), momentum))
        else:
            running.lerp_(own.to(running), momentum)


def _sums(
    gradient: torch.Tensor, input: torch.Tensor, mean: torch.Tensor, scale: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """For each channel, the sums over this rank's batch of gradient * normalized input, and of gradient."""
    if input.numel() == 0:
        return torch.zeros_like(mean), torch.zeros_like(mean)
    backward = torch.ops.aten.native_batch_norm_backward
    weight = torch.ones_like(mean)  # sets the dtype of the results
    _, products, sums = backward(gradient, input, weight, None, None, mean, scale, True, 0.0, [False, True, True])
    return products, sums


def _gradient_of_input(
    gradient: torch.Tensor, input: torch.Tensor, mean: torch.Tensor, slope: torch.Tensor, offset: torch.Tensor,
    factor: torch.Tensor,
) -> torch.Tensor:  # fmt: skip
    """(gradient - (input - mean) * slope - offset) * factor, where all but the first two are values of channels."""
    result = torch.empty_like(input)
    mean, slope, offset, factor = (each.view(1, -1, *[1] * (input.dim() - 2)) for each in (mean, -slope, offset, factor))
    rows = len(input)
    if not input.is_cuda and input.numel():
        rows = max(1, _PIECE_BYTES * rows // input.nbytes)
    for output, x, dy in zip(*(torch.split(each, rows or 1) for each in (result, input, gradient))):
        piece = torch.sub(x, mean, out=output) if output.dtype == mean.dtype else x - mean
        torch.addcmul(dy.to(mean.dtype), piece, slope, out=piece)
        piece.sub_(offset).mul_(factor)
        if piece is not output:
            output.copy_(piece)
    return result
