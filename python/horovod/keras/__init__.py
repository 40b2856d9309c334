"""horovod.keras: the names of runjob.keras."""

from runjob.keras import *  # noqa: F403

from . import elastic as elastic  # type: ignore[no-redef]
from .optimizer import DistributedOptimizer as DistributedOptimizer  # type: ignore[assignment]

import horovod.keras.callbacks as callbacks  # type: ignore[no-redef]  # isort: skip  # `from . import` would take runjob's


def __dir__() -> list[str]:
    return sorted(set(globals()) - {"optimizer"})
