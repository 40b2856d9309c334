"""runjob for TensorFlow, with the names of horovod.tensorflow:

    import tensorflow as tf
    import runjob.tensorflow as hvd
    hvd.init()
    with tf.GradientTape() as tape:
        loss = ...
    tape = hvd.DistributedGradientTape(tape)
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    hvd.broadcast_variables(model.variables, root_rank=0)
"""

from typing import TYPE_CHECKING, Any

from .. import callable_variables, common, later
from ..common import *  # noqa: F403
from . import kernels

kernels.operations()  # before imports that need more of TensorFlow than a version that is too old has

from . import differentiable, elastic  # noqa: E402
from .compression import Compression  # noqa: E402
from .functions import (  # type: ignore[assignment]  # noqa: E402  with a session among their arguments
    BroadcastGlobalVariablesHook,
    allgather_object,
    broadcast_,
    broadcast_global_variables,
    broadcast_object,
    broadcast_object_fn,
    broadcast_variables,
)
from .gradient_tape import DistributedGradientTape, PartialDistributedGradientTape  # noqa: E402
from .operations import (  # noqa: E402
    allgather,
    allreduce,
    alltoall,
    barrier,
    broadcast,
    grouped_allgather,
    grouped_allreduce,
    grouped_reducescatter,
    join,
    local_rank_op,
    local_size_op,
    process_set_included_op,
    rank_op,
    reducescatter,
    size_op,
)
from .optimizer import DistributedOptimizer  # noqa: E402

#: Names that only horovod.tensorflow has.
LATER = ("data",)

__all__ = [
    "BroadcastGlobalVariablesHook", "Compression", "DistributedGradientTape", "DistributedOptimizer", "PartialDistributedGradientTape",
    "SyncBatchNormalization", "allgather", "allgather_object", "allreduce", "alltoall", "barrier", "broadcast", "broadcast_",
    "broadcast_global_variables", "broadcast_object", "broadcast_object_fn", "broadcast_variables", "elastic", "grouped_allgather",
    "grouped_allreduce", "grouped_reducescatter", "join", "local_rank_op", "local_size_op", "process_set_included_op", "rank_op",
    "reducescatter", "size_op",
]  # fmt: skip
__all__ += [name for name in common.__all__ if name not in (*__all__, "poll", "synchronize")]

differentiable.register()
callable_variables.install()

_later = later.getattr_for(__name__, LATER)


def __dir__() -> list[str]:
    return sorted(__all__)  # without the modules that the names come from


def _getattr(name: str) -> Any:
    """Imports a name that needs Keras when a program asks for it, because tf.keras takes longer than everything else."""
    if name == "SyncBatchNormalization":
        from .sync_batch_normalization import SyncBatchNormalization

        return SyncBatchNormalization
    return _later(name)


if not TYPE_CHECKING:  # otherwise type checkers would accept every name
    __getattr__ = _getattr
