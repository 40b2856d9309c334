"""DistributedOptimizer for Keras with PyTorch's backend."""

from __future__ import annotations

from typing import Any

import keras

from ... import keras_optimizer
from ...compression import Compressor
from ...process_sets import ProcessSet, global_process_set
from ...reduce_ops import Average
from ...torch import Compression
from .gradients import Accumulation, GradientReduction


class _Distributed(keras_optimizer.Distributed):
    def apply(self, grads: Any, trainable_variables: Any = None) -> None:
        """Applies the gradients as the optimizer's own apply() does, after their reduction over the ranks."""
        variables = list(self._trainable_variables if trainable_variables is None else trainable_variables)  # type: ignore[attr-defined]
        own = super().apply  # type: ignore[misc]
        self._accumulation.step(list(grads), variables, lambda reduced: own(reduced, trainable_variables))


def DistributedOptimizer(  # noqa: N802  Horovod's name
    optimizer: Any, name: str | None = None, device_dense: str = "", device_sparse: str = "",
    compression: type[Compressor] = Compression.none, sparse_as_dense: bool = False,
    gradient_predivide_factor: float = 1.0, op: int = Average, backward_passes_per_step: int = 1,
    average_aggregated_gradients: bool = False, num_groups: int = 0, groups: Any = None,
    process_set: ProcessSet = global_process_set, scale_local_gradients: bool = True,
) -> Any:  # fmt: skip
    """Changes `optimizer` so that it reduces gradients over the ranks before it applies them, and returns it. It is
    saved with its model as the class that it was. As runjob.tensorflow.keras.DistributedOptimizer().

    op               Average or Sum.
    Without effect   name, the devices and sparse_as_dense: gradients are reduced in their own memory, and are dense.
    Errors           ValueError, also for another reduction, and for a value that is not an optimizer.
    """
    reduction = GradientReduction(
        compression, op, gradient_predivide_factor, num_groups, groups, process_set, scale_local_gradients
    )
    accumulation = Accumulation(reduction, backward_passes_per_step, average_aggregated_gradients)
    if not isinstance(optimizer, keras.optimizers.Optimizer):
        raise ValueError(f"DistributedOptimizer takes an optimizer of Keras, not {type(optimizer).__name__}")
    return keras_optimizer.distribute(optimizer, _Distributed, accumulation, keras.Model)


def PartialDistributedOptimizer(  # noqa: N802
    optimizer: Any, name: str | None = None, device_dense: str = "", device_sparse: str = "",
    compression: type[Compressor] = Compression.none, sparse_as_dense: bool = False,
    gradient_predivide_factor: float = 1.0, op: int = Average, backward_passes_per_step: int = 1,
    average_aggregated_gradients: bool = False, groups: Any = None, process_set: ProcessSet = global_process_set,
    local_layers: Any = None, scale_local_gradients: bool = True,
) -> Any:  # fmt: skip
    """DistributedOptimizer() that excludes the gradients of `local_layers`, a built layer or several, from the reduction."""
    local = list(keras_optimizer.variables_of(local_layers))
    distributed = DistributedOptimizer(
        optimizer, name, device_dense, device_sparse, compression, sparse_as_dense, gradient_predivide_factor, op,
        backward_passes_per_step, average_aggregated_gradients, 0, groups, process_set, scale_local_gradients,
    )  # fmt: skip
    for variable in local:
        distributed.register_local_var(variable)
    return distributed
