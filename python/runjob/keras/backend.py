"""Which backend Keras has."""

from __future__ import annotations

import keras


def check_backend() -> None:
    """Errors  ImportError unless it is TensorFlow's, where Keras has backends at all."""
    backend = keras.backend.backend()
    if backend == "torch":
        raise ImportError(
            "runjob.keras is for Keras with TensorFlow, and this Keras uses PyTorch: set KERAS_BACKEND=tensorflow, or train with "
            "runjob.torch"
        )
    if backend != "tensorflow":
        raise ImportError(f"runjob.keras is for Keras with TensorFlow, and this Keras uses {backend}: set KERAS_BACKEND=tensorflow")
