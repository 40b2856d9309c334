"""DistributedOptimizer: an optimizer of Keras, or of TensorFlow 1, that steps on gradients reduced over the ranks."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from ..compression import Compressor
from ..process_sets import ProcessSet, global_process_set
from ..reduce_ops import Adasum, Average
from .accumulation import Accumulation
from .compression import Compression
from .gradients import GradientReduction
from .graph_optimizer import AdasumGraphOptimizer, GraphOptimizer
from .keras_optimizer import distribute


def DistributedOptimizer(  # noqa: N802  Horovod's name
    optimizer: Any, name: str | None = None, use_locking: bool = False, device_dense: str = "", device_sparse: str = "",
    compression: type[Compressor] = Compression.none, sparse_as_dense: bool = False, backward_passes_per_step: int = 1,
    op: int = Average, gradient_predivide_factor: float = 1.0, average_aggregated_gradients: bool = False,
    num_groups: int = 0, groups: Any = None, process_set: ProcessSet = global_process_set,
    scale_local_gradients: bool = True,
) -> Any:  # fmt: skip
    """Makes `optimizer` reduce gradients over the ranks of the set before it applies them. All ranks must call it.

    optimizer                     an optimizer of Keras 3, Keras 2 or tf.keras.optimizers.legacy: it is changed and
                                  returned, with its state, and saved as the class that it was. Or an optimizer of
                                  tf.compat.v1.train: the result is one that wraps it.
    name                          the name of the optimizer that wraps another one; otherwise without effect, as
                                  use_locking is.
    backward_passes_per_step      the number of passes whose gradients are added up before they are reduced and applied.
    average_aggregated_gradients  divides the sums by that number.
    op                            also Adasum, for optimizers of tf.compat.v1.train: they step on this rank's gradients, and
                                  the changes of the variables are reduced.
    Others                        as for DistributedGradientTape().
    Errors                        ValueError for a value that is not an optimizer, and for options that exclude each
                                  other.
    """
    reduction = GradientReduction(
        compression, sparse_as_dense, op, gradient_predivide_factor, num_groups, groups, process_set, scale_local_gradients,
        device_dense, device_sparse,
    )  # fmt: skip
    if op == Adasum and average_aggregated_gradients:
        raise ValueError("average_aggregated_gradients=True goes with other ops than Adasum")
    accumulation = Accumulation(reduction, backward_passes_per_step, average_aggregated_gradients)
    if op == Adasum and isinstance(optimizer, tf.compat.v1.train.Optimizer):
        return AdasumGraphOptimizer(optimizer, name, use_locking, accumulation)
    if op == Adasum:
        raise ValueError("op=Adasum: optimizers of Keras take other ops; use DistributedGradientTape(op=Adasum)")
    if isinstance(optimizer, tf.compat.v1.train.Optimizer):
        return GraphOptimizer(optimizer, name, use_locking, accumulation)
    return distribute(optimizer, accumulation)
