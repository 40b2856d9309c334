"""horovod.tensorflow.keras.elastic."""

from runjob.tensorflow.keras.elastic import CommitStateCallback, KerasState, UpdateBatchStateCallback, UpdateEpochStateCallback, run

__all__ = ["CommitStateCallback", "KerasState", "UpdateBatchStateCallback", "UpdateEpochStateCallback", "run"]
