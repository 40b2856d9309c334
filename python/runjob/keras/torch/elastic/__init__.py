"""Elastic training with Keras where its backend is PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras

from .... import keras_elastic
from ....elastic import run
from ....elastic.array_kinds import add_kind
from ....torch.elastic.tensor_copies import TorchTensors

__all__ = ["CommitStateCallback", "KerasState", "UpdateBatchStateCallback", "UpdateEpochStateCallback", "run"]

add_kind(TorchTensors())


class KerasState(keras_elastic.ModelState):
    """keras_elastic.ModelState."""

    def arrays(self, variables: Sequence[Any]) -> list[Any]:
        """The tensors of the variables."""
        return [variable.value.detach() for variable in variables]

    def are_same(self, one: Any, other: Any) -> bool:
        """True if the two tensors share their memory."""
        return bool(one.data_ptr() == other.data_ptr())


class CommitStateCallback(keras_elastic.CommitState, keras.callbacks.Callback):  # type: ignore[misc]
    """keras_elastic.CommitState."""


class UpdateBatchStateCallback(keras_elastic.UpdateBatchState, keras.callbacks.Callback):  # type: ignore[misc]
    """keras_elastic.UpdateBatchState."""


class UpdateEpochStateCallback(keras_elastic.UpdateEpochState, keras.callbacks.Callback):  # type: ignore[misc]
    """keras_elastic.UpdateEpochState."""
