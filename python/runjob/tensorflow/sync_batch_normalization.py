"""SyncBatchNormalization: batch normalization with the statistics of all ranks' batches.

A rank computes the variance of its values around their own mean, because sums of float32 squares would lose the
variance of values whose mean is large. The sums over ranks are computed in float64.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from .. import process_sets
from ..process_sets import ProcessSet, global_process_set
from ..reduce_ops import Sum
from . import nodes
from .nodes import Naming


class SyncBatchNormalization(tf.keras.layers.BatchNormalization):  # type: ignore[misc]
    """tf.keras.layers.BatchNormalization whose mean and variance, in training, are those of all ranks' batches
    together. The batches may differ in size. Arguments are that layer's. Gradients flow through the statistics to all
    ranks.

    Errors  ValueError for fused=True, and renorm or virtual_batch_size of Keras 2.
    """

    def __init__(self, fused: bool = False, process_set: ProcessSet = global_process_set, **kwargs: Any) -> None:
        for option, value in {"fused": fused, "renorm": kwargs.get("renorm"), "virtual_batch_size": kwargs.get("virtual_batch_size")}.items():
            if value:
                raise ValueError(f"SyncBatchNormalization does not take {option}={value}")
        super().__init__(**kwargs)
        if hasattr(self, "fused"):
            self.fused = False  # Keras 2's default would not ask for statistics
        self._process_set = process_set

    def _moments(self, inputs: Any, given: Any = None, keep_dims: bool | None = None, mask: Any = None) -> tuple[Any, Any]:
        """The moments that Keras asks for: version 3 passes (inputs, mask), version 2 (inputs, axes, keep_dims, mask)."""
        if keep_dims is not None:
            return self._of_all_ranks(inputs, list(given), keep_dims, _weights(mask, inputs))
        axis = self.axis % inputs.shape.rank
        axes = [index for index in range(inputs.shape.rank) if index != axis]
        return self._of_all_ranks(inputs, axes, False, _weights(given if mask is None else mask, inputs))

    def _of_all_ranks(self, inputs: Any, axes: list[int], keep_dims: bool, weights: Any) -> tuple[Any, Any]:
        wide = tf.cast(inputs, tf.float32) if inputs.dtype in (tf.float16, tf.bfloat16) else inputs
        ones = tf.ones_like(wide) if weights is None else tf.cast(weights, wide.dtype)
        count = tf.reduce_sum(ones, axes, keepdims=True)
        mean = tf.math.divide_no_nan(tf.reduce_sum(wide * ones, axes, keepdims=True), count)
        deviation = tf.reduce_sum(tf.math.square(wide - mean) * ones, axes, keepdims=True)
        count, mean, deviation = (tf.cast(part, tf.float64) for part in (count, mean, deviation))
        local = tf.stack([count, count * mean, deviation + count * mean * mean])
        set_id = process_sets.identifier(self._process_set)
        count, total, squares = tf.unstack(nodes.run(nodes.ALLREDUCE, (local,), Naming(), set_id, reduce_op=Sum))
        mean = tf.math.divide_no_nan(total, count)
        variance = tf.maximum(tf.math.divide_no_nan(squares, count) - mean * mean, 0.0)
        moments = [tf.cast(each, inputs.dtype) for each in (mean, variance)]
        mean, variance = moments if keep_dims else [tf.squeeze(each, axes) for each in moments]
        return mean, variance


def _weights(mask: Any, inputs: Any) -> Any:
    """`mask`, which has the first dimensions of `inputs`, in the shape of `inputs`. None counts all values."""
    if mask is None:
        return None
    for _ in range(inputs.shape.rank - mask.shape.rank):
        mask = tf.expand_dims(mask, -1)
    return tf.broadcast_to(tf.cast(mask, inputs.dtype), tf.shape(inputs))
