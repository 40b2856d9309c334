"""horovod.torch.optimizer."""

from horovod.common.process_sets import ProcessSet, global_process_set
from horovod.common.util import split_list
from runjob.objects import broadcast_object
from runjob.torch import (
    Adasum,
    Average,
    Compression,
    Sum,
    allreduce_async_,
    grouped_allreduce_async_,
    rocm_built,
    size,
    sparse_allreduce_async,
    synchronize,
)
from runjob.torch.delta_optimizer import DistributedAdasumMixin as _DistributedAdasumOptimizer  # noqa: F401
from runjob.torch.optimizer import DistributedOptimizer
from runjob.torch.optimizer import _DistributedMixin as _DistributedOptimizer  # noqa: F401  for isinstance() and annotations

__all__ = [
    "Adasum", "Average", "Compression", "DistributedOptimizer", "ProcessSet", "Sum", "allreduce_async_", "broadcast_object",
    "global_process_set", "grouped_allreduce_async_", "rocm_built", "size", "sparse_allreduce_async", "split_list", "synchronize",
]  # fmt: skip
