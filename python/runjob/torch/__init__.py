"""runjob for PyTorch, with the names of horovod.torch:

    import runjob.torch as hvd
    hvd.init()
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
"""

from typing import TYPE_CHECKING

from .. import common, later
from ..common import *  # noqa: F403
from . import elastic
from .compression import Compression
from .differentiable import allgather, allreduce, alltoall, broadcast, reducescatter
from .functions import broadcast_optimizer_state, broadcast_parameters
from .grouped import (
    grouped_allgather,
    grouped_allgather_async,
    grouped_allreduce,
    grouped_allreduce_,
    grouped_allreduce_async,
    grouped_allreduce_async_,
    grouped_reducescatter,
    grouped_reducescatter_async,
)
from .operations import (
    allgather_async,
    allreduce_,
    allreduce_async,
    allreduce_async_,
    alltoall_async,
    broadcast_,
    broadcast_async,
    broadcast_async_,
    reducescatter_async,
)
from .optimizer import DistributedOptimizer
from .sparse import sparse_allreduce_async
from .symmetric import empty_symmetric

#: What horovod.torch has besides.
LATER = ("SyncBatchNorm",)

__all__ = [
    "Compression", "DistributedOptimizer", "allgather", "allgather_async", "allreduce", "allreduce_", "allreduce_async",
    "allreduce_async_", "alltoall", "alltoall_async", "broadcast", "broadcast_", "broadcast_async", "broadcast_async_",
    "broadcast_optimizer_state", "broadcast_parameters", "elastic", "empty_symmetric", "grouped_allgather",
    "grouped_allgather_async",
    "grouped_allreduce", "grouped_allreduce_", "grouped_allreduce_async", "grouped_allreduce_async_", "grouped_reducescatter",
    "grouped_reducescatter_async", "reducescatter", "reducescatter_async", "sparse_allreduce_async",
]  # fmt: skip
__all__ += common.__all__

if not TYPE_CHECKING:  # with it, type checkers would take every name for one
    __getattr__ = later.getattr_for(__name__, LATER)
