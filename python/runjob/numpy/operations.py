"""The collectives of operations.py and grouped.py for arrays."""

from __future__ import annotations

from numpy.typing import ArrayLike

from ..calls import Calls
from ..grouped import GroupedCalls, GroupedOperations
from ..operations import Operations
from .arrays import NDArrayAny, NumpyArrays
from .compression import NATIVE

__all__ = [
    "allgather", "allgather_async", "allreduce", "allreduce_", "allreduce_async", "allreduce_async_", "alltoall", "alltoall_async",
    "broadcast", "broadcast_", "broadcast_async", "broadcast_async_", "grouped_allgather", "grouped_allgather_async",
    "grouped_allreduce", "grouped_allreduce_", "grouped_allreduce_async", "grouped_allreduce_async_", "grouped_reducescatter",
    "grouped_reducescatter_async", "reducescatter", "reducescatter_async",
]  # fmt: skip

_calls: Calls[NDArrayAny] = Calls(NumpyArrays())
_operations: Operations[ArrayLike, NDArrayAny] = Operations(_calls, NATIVE)
_groups: GroupedOperations[ArrayLike, NDArrayAny] = GroupedOperations(GroupedCalls(_calls), NATIVE)

allreduce = _operations.allreduce
allreduce_ = _operations.allreduce_
allreduce_async = _operations.allreduce_async
allreduce_async_ = _operations.allreduce_async_
allgather = _operations.allgather
allgather_async = _operations.allgather_async
alltoall = _operations.alltoall
alltoall_async = _operations.alltoall_async
broadcast = _operations.broadcast
broadcast_ = _operations.broadcast_
broadcast_async = _operations.broadcast_async
broadcast_async_ = _operations.broadcast_async_
reducescatter = _operations.reducescatter
reducescatter_async = _operations.reducescatter_async

grouped_allreduce = _groups.grouped_allreduce
grouped_allreduce_ = _groups.grouped_allreduce_
grouped_allreduce_async = _groups.grouped_allreduce_async
grouped_allreduce_async_ = _groups.grouped_allreduce_async_
grouped_allgather = _groups.grouped_allgather
grouped_allgather_async = _groups.grouped_allgather_async
grouped_reducescatter = _groups.grouped_reducescatter
grouped_reducescatter_async = _groups.grouped_reducescatter_async
