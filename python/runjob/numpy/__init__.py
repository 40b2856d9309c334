"""runjob for NumPy: collectives on arrays, with Horovod's function names and arguments.

    import numpy
    import runjob.numpy as hvd
    hvd.init()
    mean = hvd.allreduce(numpy.array([1.0, 2.0]))

Functions that make a new array take whatever numpy.asarray() takes, numbers and lists too; those that end in _ work in place, on
C-contiguous arrays that may be written. Results are new arrays of the same dtype, and of 0 dimensions for a number. ml_dtypes.bfloat16 is
a dtype like the others.
"""

from .. import common
from ..common import *  # noqa: F403
from . import operations
from .compression import Compression
from .operations import *  # noqa: F403
from .symmetric import empty_symmetric

__all__ = ["Compression", "empty_symmetric"]
__all__ += operations.__all__
__all__ += common.__all__


def __dir__() -> list[str]:
    return sorted(__all__)  # without the modules that the names come from
