"""horovod.tensorflow.keras: the names of runjob.tensorflow.keras."""

from runjob.tensorflow.keras import *  # noqa: F403

from . import callbacks as callbacks  # type: ignore[no-redef]
from . import elastic as elastic  # type: ignore[no-redef]
