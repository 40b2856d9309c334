"""horovod.torch.optimizer."""

from runjob.torch.optimizer import DistributedOptimizer

__all__ = ["DistributedOptimizer"]
