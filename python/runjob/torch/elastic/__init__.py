"""What horovod.torch.elastic has: in this version the sampler, which works without the rest."""

from typing import TYPE_CHECKING

from ... import later
from .sampler import ElasticSampler

#: What horovod.torch.elastic has besides.
LATER = ("TorchState", "run", "state")

__all__ = ["ElasticSampler"]

if not TYPE_CHECKING:
    __getattr__ = later.getattr_for(__name__, LATER)
