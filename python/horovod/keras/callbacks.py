"""horovod.keras.callbacks."""

from runjob.keras.callbacks import *  # noqa: F403
from runjob.keras.callbacks import __all__ as __all__
