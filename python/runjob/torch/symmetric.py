"""Tensors in memory on which collectives can work directly. runjob_symmetric_alloc() of runjob.h defines this symmetric
memory.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from ..symmetric import allocate
from .tensors import DTYPES


def empty_symmetric(
    *size: int | tuple[int, ...] | list[int], dtype: torch.dtype | None = None, requires_grad: bool = False
) -> torch.Tensor:
    """torch.empty() in symmetric memory. allreduce_() of such a tensor, or of a view of it, is about twice as fast if
    all ranks are on one host and the tensor of each rank is symmetric. Otherwise it is an ordinary tensor.

    Owner    the memory is freed with the last view, also after shutdown(). In a job that is joined later it is ordinary
             memory.
    Threads  any. No rank waits for another one: the ranks may make different tensors, in any order.
    Errors   NotInitializedError before init(), ValueError for a dtype that collectives do not take.
    """
    dtype = dtype or torch.get_default_dtype()
    if dtype not in DTYPES:
        raise ValueError(f"empty_symmetric does not take {dtype}")
    given: Any = size[0] if len(size) == 1 and not isinstance(size[0], int) else size
    shape: tuple[int, ...] = tuple(given)
    if any(extent < 0 for extent in shape):
        raise ValueError(f"empty_symmetric: {shape} has a negative extent")
    count = math.prod(shape)
    memory = allocate(count * torch.empty(0, dtype=dtype, device="cpu").element_size())
    flat = torch.frombuffer(memory, dtype=dtype) if count else torch.empty(0, dtype=dtype, device="cpu")
    return flat.view(shape).requires_grad_(requires_grad)
