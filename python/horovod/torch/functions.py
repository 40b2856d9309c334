"""horovod.torch.functions."""

from horovod.common.process_sets import ProcessSet, global_process_set
from runjob.objects import allgather_object, broadcast_object
from runjob.torch import allgather, allreduce, broadcast_, broadcast_async_, rank, size, synchronize
from runjob.torch.functions import broadcast_optimizer_state, broadcast_parameters

__all__ = [
    "ProcessSet", "allgather", "allgather_object", "allreduce", "broadcast_", "broadcast_async_", "broadcast_object",
    "broadcast_optimizer_state", "broadcast_parameters", "global_process_set", "rank", "size", "synchronize",
]  # fmt: skip
