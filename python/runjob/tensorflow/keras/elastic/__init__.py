"""Elastic training with tf.keras, with the names of horovod.tensorflow.keras.elastic."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from .... import keras_elastic
from ...elastic import TensorFlowKerasState, run

__all__ = ["CommitStateCallback", "KerasState", "UpdateBatchStateCallback", "UpdateEpochStateCallback", "run"]


class KerasState(TensorFlowKerasState):
    """A keras_elastic.ModelState whose commits are copies of TensorFlow's variables."""

    def __init__(self, model: Any, optimizer: Any = None, **kwargs: Any) -> None:
        super().__init__(model, optimizer, **kwargs)


class CommitStateCallback(keras_elastic.CommitState, tf.keras.callbacks.Callback):  # type: ignore[misc]
    """keras_elastic.CommitState."""


class UpdateBatchStateCallback(keras_elastic.UpdateBatchState, tf.keras.callbacks.Callback):  # type: ignore[misc]
    """keras_elastic.UpdateBatchState."""


class UpdateEpochStateCallback(keras_elastic.UpdateEpochState, tf.keras.callbacks.Callback):  # type: ignore[misc]
    """keras_elastic.UpdateEpochState."""
