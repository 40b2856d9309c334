"""runjob for TensorFlow, with the names of horovod.tensorflow:

    import tensorflow as tf
    import runjob.tensorflow as hvd
    hvd.init()
    with hvd.DistributedGradientTape(tf.GradientTape()) as tape:
        ...
"""

from .. import common
from ..common import *  # noqa: F403
from . import differentiable, kernels
from .compression import Compression
from .operations import (
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

kernels.operations()
differentiable.register()
