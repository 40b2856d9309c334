"""DistributedOptimizer for models of Keras."""

from __future__ import annotations

from typing import Any

from ...compression import Compressor
from ...keras_optimizer import variables_of
from ...process_sets import ProcessSet, global_process_set
from ...reduce_ops import Average, Sum
from .. import optimizer as tensorflow_optimizer
from ..compression import Compression


def DistributedOptimizer(  # noqa: N802  Horovod's name
    optimizer: Any, name: str | None = None, device_dense: str = "", device_sparse: str = "",
    compression: type[Compressor] = Compression.none, sparse_as_dense: bool = False,
    gradient_predivide_factor: float = 1.0, op: int = Average, backward_passes_per_step: int = 1,
    average_aggregated_gradients: bool = False, num_groups: int = 0, groups: Any = None,
    process_set: ProcessSet = global_process_set, scale_local_gradients: bool = True,
) -> Any:  # fmt: skip
    """Changes `optimizer` so that it reduces gradients over the ranks before it applies them, and returns it. It is
    saved with its model as the class that it was. See runjob.tensorflow.DistributedOptimizer().

    op      Average or Sum.
    Errors  ValueError, also for another reduction.
    """
    if op not in (Average, Sum):
        raise ValueError(f"op={op!r}: optimizers of Keras take op=Average and op=Sum")
    return tensorflow_optimizer.DistributedOptimizer(
        optimizer, name, device_dense=device_dense, device_sparse=device_sparse, compression=compression,
        sparse_as_dense=sparse_as_dense, gradient_predivide_factor=gradient_predivide_factor, op=op,
        backward_passes_per_step=backward_passes_per_step, average_aggregated_gradients=average_aggregated_gradients,
        num_groups=num_groups, groups=groups, process_set=process_set, scale_local_gradients=scale_local_gradients,
    )  # fmt: skip


def PartialDistributedOptimizer(  # noqa: N802
    optimizer: Any, name: str | None = None, device_dense: str = "", device_sparse: str = "",
    compression: type[Compressor] = Compression.none, sparse_as_dense: bool = False,
    gradient_predivide_factor: float = 1.0, op: int = Average, backward_passes_per_step: int = 1,
    average_aggregated_gradients: bool = False, groups: Any = None, process_set: ProcessSet = global_process_set,
    local_layers: Any = None, scale_local_gradients: bool = True,
) -> Any:  # fmt: skip
    """DistributedOptimizer() that excludes the gradients of `local_layers`, a built layer or several, from the reduction."""
    local = list(variables_of(local_layers))
    distributed = DistributedOptimizer(
        optimizer, name, device_dense, device_sparse, compression, sparse_as_dense, gradient_predivide_factor, op,
        backward_passes_per_step, average_aggregated_gradients, 0, groups, process_set, scale_local_gradients,
    )  # fmt: skip
    for variable in local:
        distributed.register_local_var(variable)
    return distributed
