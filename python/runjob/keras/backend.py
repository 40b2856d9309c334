"""The backend that Keras uses."""

from __future__ import annotations

import keras


def backend() -> str:
    """Returns "tensorflow" or "torch". Errors  ImportError for another backend."""
    found = str(keras.backend.backend())
    if found not in ("tensorflow", "torch"):
        raise ImportError(
            f"runjob.keras is for Keras with TensorFlow and with PyTorch, and this Keras uses {found}: set KERAS_BACKEND=tensorflow or "
            "KERAS_BACKEND=torch"
        )
    return found
