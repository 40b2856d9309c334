"""runjob for tf.keras, with the names of horovod.tensorflow.keras:

    import runjob.tensorflow.keras as hvd
    hvd.init()
    model.compile(optimizer=hvd.DistributedOptimizer(optimizer), loss=...)
    model.fit(..., callbacks=[hvd.callbacks.BroadcastGlobalVariablesCallback(0)])
"""

from ... import common
from ...common import *  # noqa: F403
from .. import Compression, broadcast_global_variables
from . import callbacks, elastic
from .models import load_model
from .optimizers import DistributedOptimizer, PartialDistributedOptimizer
from .values import allgather, allreduce, broadcast, reducescatter

__all__ = [
    "Compression", "DistributedOptimizer", "PartialDistributedOptimizer", "allgather", "allreduce", "broadcast",
    "broadcast_global_variables", "callbacks", "elastic", "load_model", "reducescatter",
]  # fmt: skip
__all__ += [name for name in common.__all__ if name not in ("barrier", "join", "poll", "synchronize")]


def __dir__() -> list[str]:
    return sorted(__all__)  # without the modules that the names come from

