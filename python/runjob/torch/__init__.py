"""runjob for PyTorch, with the names of horovod.torch:

    import runjob.torch as hvd
    hvd.init()
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
"""

from torch.nn.utils import clip_grad_norm_

from .. import common
from .. import job as _job
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
from .sameness import assert_same
from .sparse import sparse_allreduce_async
from .symmetric import empty_symmetric
from .sync_batch_norm import SyncBatchNorm

__all__ = [
    "Compression", "DistributedOptimizer", "SyncBatchNorm", "allgather", "allgather_async", "allreduce", "allreduce_", "allreduce_async",
    "allreduce_async_", "alltoall", "alltoall_async", "assert_same", "broadcast", "broadcast_", "broadcast_async", "broadcast_async_",
    "broadcast_optimizer_state", "broadcast_parameters", "check", "clip_grad_norm_", "elastic", "empty_symmetric", "grouped_allgather",
    "grouped_allgather_async", "grouped_allreduce", "grouped_allreduce_", "grouped_allreduce_async", "grouped_allreduce_async_",
    "grouped_reducescatter", "grouped_reducescatter_async", "reducescatter", "reducescatter_async", "sparse_allreduce_async",
]  # fmt: skip
__all__ += common.__all__


def __dir__() -> list[str]:
    return sorted(__all__)  # without the modules that the names come from


def check() -> None:
    """Waits until all operations in flight are done, also on GPUs, and raises the error of the first one that has
    failed.

    synchronize() only orders PyTorch's stream: a failure on a GPU may be reported later, and the result on the GPU is
    then undefined. Therefore call check() before values are saved; elastic commits do so. All ranks call it at the same
    place.
    Errors  those of the operations and of the job; NotInitializedError.
    """
    _job.check_all()
