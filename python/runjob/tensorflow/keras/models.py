"""Models from files, with their optimizers distributed."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any

import tensorflow as tf

from ...compression import Compressor
from ..compression import Compression
from .optimizers import DistributedOptimizer


def load_model(
    filepath: Any, custom_optimizers: Iterable[type[Any]] | None = None, custom_objects: dict[str, Any] | None = None,
    compression: type[Compressor] = Compression.none, legacy_opts: bool = False,
) -> Any:  # fmt: skip
    """tf.keras.models.load_model(). The loaded model continues with a distributed optimizer, in the state that was
    saved.

    custom_optimizers  classes of optimizers that the file may name, in addition to Keras's own.
    legacy_opts        has no effect, because the file names its optimizers.
    """
    objects = {cls.__name__: cls for cls in custom_optimizers or ()}
    objects.update(custom_objects or {})
    model = tf.keras.models.load_model(filepath, custom_objects=objects)
    optimizer = getattr(model, "optimizer", None)
    if optimizer is not None:
        DistributedOptimizer(optimizer, compression=compression)
        _compile_anew(model)
    return model


def _compile_anew(model: Any) -> None:
    """Compiles the model again, because Keras has compiled it before the optimizer was a distributed one."""
    from ... import model_methods

    if "jit_compile" in inspect.signature(model.compile).parameters:
        model_methods.turn_off_xla(model)
