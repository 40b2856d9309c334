"""runjob for NumPy: collectives on arrays, with Horovod's function names and arguments.

    import numpy
    import runjob.numpy as hvd
    hvd.init()
    mean = hvd.allreduce(numpy.array([1.0, 2.0]))

Functions that make a new array take whatever numpy.asarray() takes, numbers and lists too; those that end in _ work in place, on
C-contiguous arrays that may be written. Results are new arrays of the same dtype, and of 0 dimensions for a number. ml_dtypes.bfloat16 is
a dtype like the others.
"""

from .. import common
from ..common import *  # noqa: F403
from .compression import Compression
from .operations import (
    allgather,
    allgather_async,
    allreduce,
    allreduce_,
    allreduce_async,
    allreduce_async_,
    alltoall,
    alltoall_async,
    broadcast,
    broadcast_,
    broadcast_async,
    broadcast_async_,
    grouped_allgather,
    grouped_allgather_async,
    grouped_allreduce,
    grouped_allreduce_,
    grouped_allreduce_async,
    grouped_allreduce_async_,
    grouped_reducescatter,
    grouped_reducescatter_async,
    reducescatter,
    reducescatter_async,
)
from .symmetric import empty_symmetric

__all__ = [
    "Compression", "allgather", "allgather_async", "allreduce", "allreduce_", "allreduce_async", "allreduce_async_", "alltoall",
    "alltoall_async", "broadcast", "broadcast_", "broadcast_async", "broadcast_async_", "empty_symmetric", "grouped_allgather",
    "grouped_allgather_async", "grouped_allreduce", "grouped_allreduce_", "grouped_allreduce_async", "grouped_allreduce_async_",
    "grouped_reducescatter", "grouped_reducescatter_async", "reducescatter", "reducescatter_async",
]  # fmt: skip
__all__ += common.__all__
