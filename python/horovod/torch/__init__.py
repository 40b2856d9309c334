"""horovod.torch: the names of runjob.torch."""

import runjob.torch as _implementation
from runjob.torch import *  # noqa: F403


def __getattr__(name):
    return getattr(_implementation, name)  # names of later versions explain themselves
