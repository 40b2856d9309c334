"""horovod.keras: the names of runjob.keras."""

from runjob.keras import *  # noqa: F403

from . import callbacks as callbacks  # type: ignore[no-redef]
from . import elastic as elastic  # type: ignore[no-redef]
