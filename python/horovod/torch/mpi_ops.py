"""horovod.torch.mpi_ops: the operations of runjob.torch."""

from typing import TYPE_CHECKING, Any

import runjob.torch as _implementation
from horovod.common import basics as _basics  # noqa: F401  scripts ask it for the process sets
from runjob.torch import *  # noqa: F403

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        return getattr(_implementation, name)
