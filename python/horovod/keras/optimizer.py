"""horovod.keras.DistributedOptimizer, whose arguments have another order than those of horovod.tensorflow.keras."""

from typing import Any

from runjob import keras as _implementation
from runjob.keras import Compression
from runjob.process_sets import global_process_set
from runjob.reduce_ops import Average


def DistributedOptimizer(  # noqa: N802  Horovod's name
    optimizer: Any, name: Any = None, device_dense: str = "", device_sparse: str = "", compression: Any = Compression.none,
    sparse_as_dense: bool = False, gradient_predivide_factor: float = 1.0, op: int = Average, num_groups: int = 0,
    groups: Any = None, backward_passes_per_step: int = 1, average_aggregated_gradients: bool = False,
    process_set: Any = global_process_set, scale_local_gradients: bool = True,
) -> Any:  # fmt: skip
    """runjob.keras.DistributedOptimizer(). Horovod has the arguments up to `groups`."""
    return _implementation.DistributedOptimizer(
        optimizer, name, device_dense, device_sparse, compression, sparse_as_dense, gradient_predivide_factor, op,
        backward_passes_per_step, average_aggregated_gradients, num_groups, groups, process_set, scale_local_gradients,
    )  # fmt: skip
