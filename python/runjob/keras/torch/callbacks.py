"""Callbacks for model.fit() of Keras with PyTorch's backend."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import keras
import torch

from ... import keras_callbacks
from ... import torch as operations


class BroadcastGlobalVariablesCallback(keras.callbacks.Callback):  # type: ignore[misc]
    """Sends all ranks root_rank's variables of the model and the optimizer, at the end of the first batch, when all
    variables exist.

    device           has no effect.
    local_variables  the variables that each rank keeps. register_local_var() adds one.
    """

    def __init__(self, root_rank: int, device: str = "", local_variables: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._root_rank = root_rank
        self._local = {id(variable) for variable in local_variables or ()}
        self._is_done = False

    def register_local_var(self, var: Any) -> None:
        """Excludes a variable from the broadcast."""
        self._local.add(id(var))

    def on_batch_end(self, batch: int, logs: Any = None) -> None:
        """Broadcasts at the end of the first batch."""
        if self._is_done:
            return
        given = [*self.model.variables, *self.model.optimizer.variables]
        unique = {id(variable): variable for variable in given if id(variable) not in self._local}
        operations.broadcast_parameters([variable.value.detach() for variable in unique.values()], self._root_rank)
        self._is_done = True


class MetricAverageCallback(keras_callbacks.MetricAverage, keras.callbacks.Callback):  # type: ignore[misc]
    """Averages the metrics of an epoch over the ranks, for the later callbacks and for the history. `device` has no
    effect.
    """

    def __init__(self, device: str = "") -> None:
        super().__init__()

    def average(self, numbers: list[float]) -> list[float]:
        """The averages of the ranks' numbers."""
        averages: list[float] = operations.allreduce(torch.tensor(numbers, dtype=torch.float64)).tolist()
        return averages


class LearningRateScheduleCallback(keras_callbacks.LearningRateSchedule, keras.callbacks.Callback):  # type: ignore[misc]
    """keras_callbacks.LearningRateSchedule."""


class LearningRateWarmupCallback(keras_callbacks.LearningRateWarmup, LearningRateScheduleCallback):
    """keras_callbacks.LearningRateWarmup."""


class BestModelCheckpoint(keras_callbacks.BestModel, keras.callbacks.ModelCheckpoint):  # type: ignore[misc]
    """A keras.callbacks.ModelCheckpoint that keeps only the best model. Set `filepath` before fit(), on the ranks that
    save.
    """
