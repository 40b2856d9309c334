"""PyTorch's five functions for a batch norm over several processes, for tensors of the CPU: PyTorch has them for GPUs only. They compute in
float64, from the definitions, and have the dtypes of the real ones. They show how gpu_batch_norm.py puts them together, not that the kernels
of a GPU get what they take.
"""

from __future__ import annotations

import torch


def _of_statistics(input):
    return torch.float64 if input.dtype == torch.float64 else torch.float32


def _along(channels, like):
    return channels.double().view(1, -1, *[1] * (like.dim() - 2))


def _others(input):
    return [each for each in range(input.dim()) if each != 1]


def batch_norm_stats(input, eps):
    wide = input.double()
    mean = wide.mean(_others(input))
    scale = (wide.var(_others(input), unbiased=False) + eps).rsqrt()
    return mean.to(_of_statistics(input)), scale.to(_of_statistics(input))


def batch_norm_gather_stats_with_counts(input, mean, invstd, running_mean, running_var, momentum, eps, counts):
    means, variances, counts = mean.double(), invstd.double().pow(-2) - eps, counts.double()[:, None]
    count = counts.sum()
    merged = (counts * means).sum(0) / count
    deviation = (counts * (variances + (means - merged).square())).sum(0)
    if running_mean is not None:
        running_mean.lerp_(merged.to(running_mean), momentum)
        running_var.lerp_((deviation / (count - 1)).to(running_var), momentum)
    return merged.to(mean.dtype), (deviation / count + eps).rsqrt().to(mean.dtype)


def batch_norm_elemt(input, weight, bias, mean, invstd, eps):
    if weight is not None and weight.dtype not in (input.dtype, mean.dtype):
        raise RuntimeError(f"expected scalar type {mean.dtype} but found {weight.dtype}")
    normalized = (input.double() - _along(mean, input)) * _along(invstd, input)
    normalized = normalized if weight is None else normalized * _along(weight, input)
    return (normalized if bias is None else normalized + _along(bias, input)).to(input.dtype)


def batch_norm_backward_reduce(grad_out, input, mean, invstd, weight, input_g, weight_g, bias_g):
    gradient, centred = grad_out.double(), input.double() - _along(mean, input)
    sums, products = gradient.sum(_others(input)), (gradient * centred).sum(_others(input))
    dtype = mean.dtype if weight is None else weight.dtype
    both = (sums.to(mean.dtype), products.to(mean.dtype)) if input_g else (None, None)
    return *both, (products * invstd).to(dtype) if weight_g else None, sums.to(dtype) if bias_g else None


def batch_norm_backward_elemt(grad_out, input, mean, invstd, weight, sum_dy, sum_dy_xmu, count):
    assert count.dtype == torch.int32
    gradient, centred = grad_out.double(), input.double() - _along(mean, input)
    scale = _along(invstd, input)
    means = [_along(each.double() / count.sum(), input) for each in (sum_dy, sum_dy_xmu)]
    result = (gradient - means[0] - centred * scale.square() * means[1]) * scale
    return (result if weight is None else result * _along(weight, input)).to(input.dtype)


FUNCTIONS = (
    batch_norm_stats, batch_norm_gather_stats_with_counts, batch_norm_elemt, batch_norm_backward_reduce, batch_norm_backward_elemt,
)  # fmt: skip


def install():
    """In this process, for all tensors."""
    for function in FUNCTIONS:
        setattr(torch, function.__name__, function)
