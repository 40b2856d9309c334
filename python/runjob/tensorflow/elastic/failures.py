"""Translates errors of TensorFlow's operations after which training can continue in another generation."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import tensorflow as tf

from ... import elastic
from ...exceptions import PeerLostError

Result = TypeVar("Result")


def run(func: Callable[..., Result]) -> Callable[..., Result]:
    """runjob.elastic.run() for functions whose collectives are operations of TensorFlow, which raise TensorFlow's own
    errors.
    """

    @functools.wraps(func)
    def translated(*args: Any, **kwargs: Any) -> Result:
        try:
            return func(*args, **kwargs)
        except (tf.errors.UnknownError, tf.errors.AbortedError) as error:
            if "Horovod" not in str(error):
                raise
            raise PeerLostError(error.message) from error

    return elastic.run(translated)
