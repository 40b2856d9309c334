"""horovod.tensorflow.util: what scripts import from it."""

import tensorflow as tf

from horovod.common.util import split_list

__all__ = ["split_list"]


def _executing_eagerly() -> bool:
    """Whether outside of functions and graphs."""
    return bool(tf.executing_eagerly())
