"""horovod.keras.elastic."""

from runjob.keras import elastic as _implementation

CommitStateCallback = _implementation.CommitStateCallback
KerasState = _implementation.KerasState
UpdateBatchStateCallback = _implementation.UpdateBatchStateCallback
UpdateEpochStateCallback = _implementation.UpdateEpochStateCallback
run = _implementation.run

__all__ = ["CommitStateCallback", "KerasState", "UpdateBatchStateCallback", "UpdateEpochStateCallback", "run"]
