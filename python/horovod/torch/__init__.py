"""horovod.torch: the names of runjob.torch."""

from typing import TYPE_CHECKING, Any

import runjob.torch as _implementation
from runjob.torch import *  # noqa: F403

from . import elastic as elastic  # type: ignore[no-redef]
from . import mpi_ops as mpi_ops

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        return getattr(_implementation, name)  # names of later versions explain themselves
