"""The reductions of torch.distributed in terms of those that the library has.

    SUM, AVG, MIN, MAX, PRODUCT   the library's own
    PREMUL_SUM                    a sum with a factor before it
    complex numbers               sums and averages of pairs of real numbers
    uint32, uint64                sums and products of signed integers, which have the same bits; the order of MIN and
                                  MAX is that of signed integers after the highest bit is flipped
    BAND, BOR, BXOR               the tensors of all ranks are gathered, and each rank combines them
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, NamedTuple

import torch
import torch.distributed as dist

from ..tensors import DTYPES

_OPS = {
    dist.ReduceOp.AVG: 0, dist.ReduceOp.SUM: 1, dist.ReduceOp.MIN: 3, dist.ReduceOp.MAX: 4, dist.ReduceOp.PRODUCT: 5,
    dist.ReduceOp.PREMUL_SUM: 1,
}  # fmt: skip
#: Those that the library does without a factor, by PyTorch's numbers, which are found faster than its objects.
SIMPLE = {op.value: number for op, number in _OPS.items() if op != dist.ReduceOp.PREMUL_SUM}
_SIGNED = {
    getattr(torch, unsigned): signed
    for unsigned, signed in (("uint32", torch.int32), ("uint64", torch.int64))
    if hasattr(torch, unsigned)
}
_BITWISE: dict[Any, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    dist.ReduceOp.BAND: torch.bitwise_and,
    dist.ReduceOp.BOR: torch.bitwise_or,
    dist.ReduceOp.BXOR: torch.bitwise_xor,
}


class Reduction(NamedTuple):
    """The way in which the library reduces tensors of one dtype.

    op        the library's number; None: the ranks gather the tensors and call `combine`.
    dtype     the dtype that the library sees.
    flips     the highest bit of each element is flipped before and after.
    prescale  the factor before the reduction: a number, or a tensor that this rank multiplies with.
    """

    op: int | None
    dtype: torch.dtype
    flips: bool = False
    prescale: Any = 1.0
    combine: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] | None = None

    @property
    def is_direct(self) -> bool:
        """True if the library can reduce the tensor's own memory."""
        return self.op is not None and not self.flips and not isinstance(self.prescale, torch.Tensor)

    def sent(self, tensor: torch.Tensor) -> torch.Tensor:
        """The tensor that the library reduces, in memory of its own unless `is_direct`."""
        if isinstance(self.prescale, torch.Tensor):
            tensor = tensor * self.prescale.to(tensor.device)
        seen = seen_as(tensor, self.dtype)
        return seen ^ _highest_bit(self.dtype) if self.flips else seen

    def received(self, reduced: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
        """The result in the dtype of `like`."""
        if self.flips:
            reduced = reduced ^ _highest_bit(self.dtype)
        if like.is_complex():
            return torch.view_as_complex(reduced.view(*reduced.shape[:-1], -1, 2)) if reduced.dim() else reduced
        return reduced.view(like.dtype)

    def combined(self, gathered: torch.Tensor) -> torch.Tensor:
        """Combines the rows of `gathered`, one for each rank."""
        assert self.combine is not None
        return reduce(self.combine, gathered.unbind(0))


def of(asked: Any, dtype: torch.dtype) -> Reduction:
    """The reduction `asked` of tensors of `dtype`. `asked` is a ReduceOp. Errors  ValueError names both if there is none."""
    op = asked.op if hasattr(asked, "op") else asked
    if op in _BITWISE:
        if dtype.is_floating_point or dtype.is_complex:
            raise ValueError(f"{_name(op)} of {dtype}: bitwise reductions take integers and bools")
        return Reduction(None, dtype, combine=_BITWISE[op])
    if op not in _OPS:
        raise ValueError(f"runjob has no reduction {_name(op)}")
    prescale = _factor(asked) if op == dist.ReduceOp.PREMUL_SUM else 1.0
    if dtype in DTYPES:
        return Reduction(_OPS[op], dtype, prescale=prescale)
    is_sum = op in (dist.ReduceOp.SUM, dist.ReduceOp.AVG, dist.ReduceOp.PREMUL_SUM)
    if dtype.is_complex and is_sum and not isinstance(prescale, torch.Tensor) and dtype.to_real() in DTYPES:
        return Reduction(_OPS[op], dtype.to_real(), prescale=prescale)
    if dtype in _SIGNED and op in (dist.ReduceOp.SUM, dist.ReduceOp.PRODUCT):
        return Reduction(_OPS[op], _SIGNED[dtype])
    if dtype in _SIGNED and op in (dist.ReduceOp.MIN, dist.ReduceOp.MAX):
        return Reduction(_OPS[op], _SIGNED[dtype], flips=True)
    raise ValueError(f"runjob has no {_name(op)} of {dtype}; convert the tensor, for example to torch.float32")


def seen_as(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The memory of a contiguous tensor as one dimension of `dtype`."""
    flat = tensor.detach().reshape(-1)
    if flat.dtype == dtype:
        return flat
    return torch.view_as_real(flat).reshape(-1) if flat.is_complex() and dtype.is_floating_point else flat.view(dtype)


def _highest_bit(dtype: torch.dtype) -> int:
    return torch.iinfo(dtype).min


def _factor(asked: Any) -> Any:
    if hasattr(asked, "factor"):
        return asked.factor
    return asked.__getstate__()[1]  # before PyTorch 2.15


def _name(op: Any) -> str:
    return str(op).rsplit(".", 1)[-1]
