"""horovod.torch.mpi_ops: the operations of runjob.torch."""

import runjob.torch as _implementation
from horovod.common import basics as _basics  # noqa: F401  scripts ask it for the process sets
from runjob.torch import *  # noqa: F403


def __getattr__(name):
    return getattr(_implementation, name)
