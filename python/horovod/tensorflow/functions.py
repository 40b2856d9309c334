"""horovod.tensorflow.functions."""

from runjob.tensorflow.functions import (
    allgather_object,
    broadcast_global_variables,
    broadcast_object,
    broadcast_object_fn,
    broadcast_variables,
)

__all__ = ["allgather_object", "broadcast_global_variables", "broadcast_object", "broadcast_object_fn", "broadcast_variables"]
