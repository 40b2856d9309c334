"""The callbacks for the backend that Keras uses."""

from typing import TYPE_CHECKING

from .backend import backend

if TYPE_CHECKING or backend() == "tensorflow":
    from ..tensorflow.keras.callbacks import (
        BestModelCheckpoint,
        BroadcastGlobalVariablesCallback,
        LearningRateScheduleCallback,
        LearningRateWarmupCallback,
        MetricAverageCallback,
    )
else:
    from .torch.callbacks import (
        BestModelCheckpoint,
        BroadcastGlobalVariablesCallback,
        LearningRateScheduleCallback,
        LearningRateWarmupCallback,
        MetricAverageCallback,
    )

__all__ = [
    "BestModelCheckpoint", "BroadcastGlobalVariablesCallback", "LearningRateScheduleCallback", "LearningRateWarmupCallback",
    "MetricAverageCallback",
]  # fmt: skip
