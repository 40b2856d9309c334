"""horovod.torch: the names of runjob.torch."""

from runjob.torch import *  # noqa: F403

from . import compression as compression
from . import elastic as elastic  # type: ignore[no-redef]
from . import functions as functions
from . import mpi_ops as mpi_ops
from . import optimizer as optimizer
from . import sync_batch_norm as sync_batch_norm
