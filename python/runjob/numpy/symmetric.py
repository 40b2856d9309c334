"""Arrays in memory on which collectives can work directly. runjob_symmetric_alloc() of runjob.h defines this symmetric
memory.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy
from numpy.typing import DTypeLike

from ..symmetric import allocate
from .arrays import NDArrayAny, number_of


def empty_symmetric(shape: int | Sequence[int], dtype: DTypeLike = numpy.float64) -> NDArrayAny:
    """numpy.empty() in symmetric memory. allreduce_() of such an array, or of a view of it, is about twice as fast if
    all ranks are on one host and the array of each rank is symmetric. Otherwise it is an ordinary array.

    Owner    the memory is freed with the last view, also after shutdown(). In a job that is joined later it is ordinary
             memory.
    Threads  any. No rank waits for another one: the ranks may make different arrays, in any order.
    Errors   NotInitializedError before init(), ValueError for a dtype that collectives do not take.
    """
    kind: numpy.dtype[Any] = numpy.dtype(dtype)
    number_of(kind, "empty_symmetric")
    extents = (shape,) if isinstance(shape, int) else tuple(shape)
    if any(extent < 0 for extent in extents):
        raise ValueError(f"empty_symmetric: {extents} has a negative extent")
    count = math.prod(extents)
    memory = allocate(count * kind.itemsize)
    flat = numpy.frombuffer(memoryview(memory), dtype=kind) if count else numpy.empty(0, dtype=kind)
    return flat.reshape(extents)
