"""Keras 3 compiles training steps by XLA unless told otherwise (jit_compile="auto"), which takes no collectives. Models that train with us
are not compiled; that is said once. Horovod's scripts say experimental_run_tf_function=False for the same purpose, which Keras has forgotten."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import tensorflow as tf

_watched = False
_has_warned = False


def watch() -> None:
    """Has compile() of models not turn XLA on for a distributed optimizer, from now on, unless the program says jit_compile=True, and
    take experimental_run_tf_function=, without effect."""
    global _watched
    if _watched:
        return
    _watched = True
    # Where it is defined: Keras loads models whose classes have another one of their own in another way.
    owner = next(cls for cls in tf.keras.Model.__mro__ if "compile" in vars(cls))
    own = owner.compile

    @functools.wraps(own)
    def compile(self: Any, *arguments: Any, **options: Any) -> Any:
        options.pop("experimental_run_tf_function", None)
        result = own(self, *arguments, **options)
        if options.get("jit_compile", "auto") == "auto" and _is_ours(getattr(self, "optimizer", None)):
            turn_off(self)
        return result

    owner.compile = compile


def turn_off(model: Any) -> None:
    """For one model, before its training step is made. Warns the first time that it changes something."""
    global _has_warned
    if not getattr(model, "jit_compile", False):
        return
    model.jit_compile = False
    if not _has_warned:
        _has_warned = True
        warnings.warn(
            "XLA cannot compile collectives: this model trains without it, as with model.compile(..., jit_compile=False)", stacklevel=3
        )


def _is_ours(optimizer: Any) -> bool:
    from .keras_optimizer import is_distributed

    return is_distributed(optimizer) or is_distributed(getattr(optimizer, "inner_optimizer", None))
