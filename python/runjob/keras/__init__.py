"""runjob for Keras, with the names of horovod.keras. They are those of runjob.tensorflow.keras, also if Keras's backend
is PyTorch.

    import keras
    import runjob.keras as hvd
    hvd.init()
    model.compile(optimizer=hvd.DistributedOptimizer(optimizer), loss=...)

Errors  ImportError with another backend of Keras.
"""

from typing import TYPE_CHECKING

from .backend import backend

if TYPE_CHECKING or backend() == "tensorflow":
    from ..tensorflow import keras as _implementation
    from ..tensorflow.keras import *  # noqa: F403
else:
    from . import torch as _implementation
    from .torch import *  # noqa: F403

__all__ = [*_implementation.__all__]


def __dir__() -> list[str]:
    return sorted(__all__)  # without the modules that the names come from
