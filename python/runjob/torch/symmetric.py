"""Tensors in memory that collectives can work on directly: runjob_symmetric_alloc() of runjob.h says what that is."""

from __future__ import annotations

import ctypes
import math
import weakref

import torch

from .. import basics
from .._library import library
from .tensors import DTYPES


def empty_symmetric(
    *size: int | tuple[int, ...] | list[int], dtype: torch.dtype | None = None, requires_grad: bool = False
) -> torch.Tensor:
    """torch.empty() in symmetric memory: allreduce_() of it, or of a view of it, is about twice as fast when all ranks are on one
    host and each one's tensor is symmetric. Everywhere else it is a tensor like any other.

    Owner    the memory is freed with the last view, also after shutdown(); in a job that is joined later it is ordinary memory.
    Threads  any. No rank waits for another one: the ranks may make different tensors, in any order.
    Errors   NotInitializedError before init(), ValueError for a dtype that collectives do not take.
    """
    dtype = dtype or torch.get_default_dtype()
    if dtype not in DTYPES:
        raise ValueError(f"empty_symmetric does not take {dtype}")
    shape = tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else size
    if any(extent < 0 for extent in shape):
        raise ValueError(f"empty_symmetric: {shape} has a negative extent")
    count = math.prod(shape)
    memory = _allocate(count * torch.empty(0, dtype=dtype).element_size())
    flat = torch.frombuffer(memory, dtype=dtype) if count else torch.empty(0, dtype=dtype)
    return flat.view(shape).requires_grad_(requires_grad)


def _allocate(size: int) -> ctypes.Array:
    """`size` bytes as a buffer that frees them when nobody refers to it any more."""
    address = ctypes.c_void_p()
    basics.check(library().runjob_symmetric_alloc(size, ctypes.byref(address)))
    buffer = (ctypes.c_ubyte * size).from_address(address.value or 0)
    # Not at exit, where tensors may still be in use; the memory goes with the process.
    weakref.finalize(buffer, library().runjob_symmetric_free, address).atexit = False
    return buffer
