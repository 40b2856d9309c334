"""Models from files, with their optimizers distributed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import keras

from ...compression import Compressor
from ...torch import Compression
from .optimizers import DistributedOptimizer


def load_model(
    filepath: Any, custom_optimizers: Iterable[type[Any]] | None = None, custom_objects: dict[str, Any] | None = None,
    compression: type[Compressor] = Compression.none, legacy_opts: bool = False,
) -> Any:  # fmt: skip
    """keras.models.load_model(). The loaded model continues with a distributed optimizer, in the state that was saved.

    custom_optimizers  classes of optimizers that the file may name, in addition to Keras's own.
    legacy_opts        has no effect, because the file names its optimizers.
    """
    objects = {cls.__name__: cls for cls in custom_optimizers or ()}
    objects.update(custom_objects or {})
    model = keras.models.load_model(filepath, custom_objects=objects)
    optimizer = getattr(model, "optimizer", None)
    if optimizer is not None:
        DistributedOptimizer(optimizer, compression=compression)
    return model
