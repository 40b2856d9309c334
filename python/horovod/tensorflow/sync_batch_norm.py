"""horovod.tensorflow.sync_batch_norm."""

from runjob.tensorflow.sync_batch_normalization import SyncBatchNormalization

__all__ = ["SyncBatchNormalization"]
