"""DistributedOptimizer for Keras with PyTorch's backend."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import keras

from ... import model_methods
from ...compression import Compressor
from ...process_sets import ProcessSet, global_process_set
from ...reduce_ops import Average
from ...torch import Compression
from .gradients import Accumulation, GradientReduction


class _Distributed:
    """What distribute() puts in front of an optimizer's own class."""

    _accumulation: Accumulation

    def apply(self, grads: Any, trainable_variables: Any = None) -> None:
        """The optimizer's own, with the gradients reduced over the ranks."""
        variables = list(self._trainable_variables if trainable_variables is None else trainable_variables)  # type: ignore[attr-defined]
        own = super().apply  # type: ignore[misc]
        self._accumulation.step(list(grads), variables, lambda reduced: own(reduced, trainable_variables))

    def register_local_var(self, var: Any) -> None:
        """Leaves the gradients of a variable to each rank."""
        self._accumulation.reduction.register_local(var)

    def __reduce__(self) -> Any:
        raise TypeError("a distributed optimizer belongs to its job and cannot be pickled; pickle its get_config() and variables")


def DistributedOptimizer(  # noqa: N802  Horovod's name
    optimizer: Any, name: str | None = None, device_dense: str = "", device_sparse: str = "",
    compression: type[Compressor] = Compression.none, sparse_as_dense: bool = False,
    gradient_predivide_factor: float = 1.0, op: int = Average, backward_passes_per_step: int = 1,
    average_aggregated_gradients: bool = False, num_groups: int = 0, groups: Any = None,
    process_set: ProcessSet = global_process_set, scale_local_gradients: bool = True,
) -> Any:  # fmt: skip
    """`optimizer`, which now reduces gradients over the ranks before it applies them. It is the same object, and saved with its model as the
    class that it was. As runjob.tensorflow.keras.DistributedOptimizer().

    op               Average or Sum.
    Without effect   name, the devices and sparse_as_dense: gradients stay where they are, and are dense.
    Errors           ValueError, also for another reduction, what is no optimizer, and one that is distributed already.
    """
    reduction = GradientReduction(
        compression, op, gradient_predivide_factor, num_groups, groups, process_set, scale_local_gradients
    )
    return _distribute(optimizer, Accumulation(reduction, backward_passes_per_step, average_aggregated_gradients))


def PartialDistributedOptimizer(  # noqa: N802
    optimizer: Any, name: str | None = None, device_dense: str = "", device_sparse: str = "",
    compression: type[Compressor] = Compression.none, sparse_as_dense: bool = False,
    gradient_predivide_factor: float = 1.0, op: int = Average, backward_passes_per_step: int = 1,
    average_aggregated_gradients: bool = False, groups: Any = None, process_set: ProcessSet = global_process_set,
    local_layers: Any = None, scale_local_gradients: bool = True,
) -> Any:  # fmt: skip
    """DistributedOptimizer(), which leaves the gradients of `local_layers`, a built layer or several, to each rank."""
    local = list(_variables_of(local_layers))
    distributed = DistributedOptimizer(
        optimizer, name, device_dense, device_sparse, compression, sparse_as_dense, gradient_predivide_factor, op,
        backward_passes_per_step, average_aggregated_gradients, 0, groups, process_set, scale_local_gradients,
    )  # fmt: skip
    for variable in local:
        distributed.register_local_var(variable)
    return distributed


def is_distributed(optimizer: Any) -> bool:
    """Whether DistributedOptimizer() has made it."""
    return isinstance(optimizer, _Distributed)


def _distribute(optimizer: Any, accumulation: Accumulation) -> Any:
    own = type(optimizer)
    if is_distributed(optimizer):
        raise ValueError(f"this {own.__name__} is distributed already: DistributedOptimizer() was called with it before")
    if not isinstance(optimizer, keras.optimizers.Optimizer):
        raise ValueError(f"DistributedOptimizer takes an optimizer of Keras, not {own.__name__}")
    # Keras looks for its own optimizers under this name when a saved model is loaded.
    module = "keras.optimizers" if own.__module__.startswith(("keras.src.", "keras.optimizers.")) else own.__module__
    optimizer.__class__ = type(own.__name__, (_Distributed, own), {"__module__": module, "__qualname__": own.__qualname__})
    object.__setattr__(optimizer, "_accumulation", accumulation)
    model_methods.watch(keras.Model, is_distributed)
    return optimizer


def _variables_of(layers: Any) -> Iterable[Any]:
    listed = [] if layers is None else layers if isinstance(layers, (list, tuple, set)) else [layers]
    for layer in listed:
        if not hasattr(layer, "trainable_weights"):
            raise ValueError(f"local_layers: {layer!r} is no layer of Keras")
        yield from layer.trainable_weights
