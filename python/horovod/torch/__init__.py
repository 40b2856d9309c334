"""horovod.torch: the names of runjob.torch."""

from runjob.torch import *  # noqa: F403

from . import elastic as elastic  # type: ignore[no-redef]
from . import mpi_ops as mpi_ops
