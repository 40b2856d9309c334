"""horovod.torch.sync_batch_norm."""

from runjob.torch.sync_batch_norm import SyncBatchNorm

__all__ = ["SyncBatchNorm"]
