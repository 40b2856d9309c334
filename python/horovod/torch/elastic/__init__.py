"""horovod.torch.elastic."""

from typing import TYPE_CHECKING, Any

import runjob.torch.elastic as _implementation
from runjob.torch.elastic import ElasticSampler

__all__ = ["ElasticSampler"]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        return getattr(_implementation, name)  # names of later versions explain themselves
