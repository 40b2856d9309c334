"""runjob for Keras with TensorFlow's backend, with the names of horovod.keras: those of runjob.tensorflow.keras.

    import keras
    import runjob.keras as hvd
    hvd.init()
    model.compile(optimizer=hvd.DistributedOptimizer(optimizer), loss=...)

Errors  ImportError with another backend of Keras.
"""

from .backend import check_backend

check_backend()

from ..tensorflow import keras as _implementation  # noqa: E402
from ..tensorflow.keras import *  # noqa: E402, F403

__all__ = [*_implementation.__all__]

