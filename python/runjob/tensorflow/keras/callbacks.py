"""Callbacks for model.fit(). The first of them that is attached to a model also prevents Keras 3 from compiling its
steps, see model_methods.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import tensorflow as tf

from ... import keras_callbacks, model_methods
from .. import functions, operations


class _Callback(tf.keras.callbacks.Callback):  # type: ignore[misc]
    def set_model(self, model: Any) -> None:
        """Attaches the callback to a model, as Keras's own function does, and turns XLA off for the model."""
        super().set_model(model)
        model_methods.turn_off_xla(model)


class BroadcastGlobalVariablesCallback(_Callback):
    """Sends all ranks root_rank's variables of the model and the optimizer, at the end of the first batch, when all
    variables exist.

    device           a tf.device() for the operation.
    local_variables  the variables that each rank keeps. register_local_var() adds one.
    """

    def __init__(self, root_rank: int, device: str = "", local_variables: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._root_rank = root_rank
        self._device = device
        self._local = {_identity(variable) for variable in local_variables or ()}
        self._is_done = False

    def register_local_var(self, var: Any) -> None:
        """Excludes a variable from the broadcast."""
        self._local.add(_identity(var))

    def on_batch_end(self, batch: int, logs: Any = None) -> None:
        """Broadcasts at the end of the first batch."""
        if self._is_done:
            return
        variables = self.model.optimizer.variables
        given = functions.assignable([*self.model.variables, *(variables() if callable(variables) else variables)])
        unique = {_identity(variable): variable for variable in given if _identity(variable) not in self._local}
        with tf.device(self._device or None):
            functions.broadcast_variables(unique.values(), self._root_rank)
        self._is_done = True


class MetricAverageCallback(keras_callbacks.MetricAverage, _Callback):
    """Averages the metrics of an epoch over the ranks, for the later callbacks and for the history. All ranks have the
    same metrics.
    """

    def __init__(self, device: str = "") -> None:
        super().__init__()
        self._device = device

    def average(self, numbers: list[float]) -> list[float]:
        """The averages of the ranks' numbers."""
        with tf.device(self._device or None):
            averages: list[float] = operations.allreduce(tf.constant(numbers, tf.float64)).numpy().tolist()
        return averages


class LearningRateScheduleCallback(keras_callbacks.LearningRateSchedule, _Callback):
    """keras_callbacks.LearningRateSchedule."""


class LearningRateWarmupCallback(keras_callbacks.LearningRateWarmup, LearningRateScheduleCallback):
    """keras_callbacks.LearningRateWarmup."""


class BestModelCheckpoint(keras_callbacks.BestModel, tf.keras.callbacks.ModelCheckpoint):  # type: ignore[misc]
    """A tf.keras.callbacks.ModelCheckpoint that keeps only the best model. Set `filepath` before fit(), on the ranks
    that save.
    """


def _identity(variable: Any) -> int:
    inner = getattr(variable, "value", None)
    return id(inner) if isinstance(inner, tf.Variable) else id(variable)
