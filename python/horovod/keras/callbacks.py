"""horovod.keras.callbacks: those of horovod.tensorflow.keras."""

from ..tensorflow.keras.callbacks import *  # noqa: F403
from ..tensorflow.keras.callbacks import __all__ as __all__
