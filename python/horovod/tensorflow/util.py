"""horovod.tensorflow.util: the functions that scripts import from it."""

from typing import Any

import tensorflow as tf

from horovod.common.util import _cache as _cache
from horovod.common.util import split_list

__all__ = ["refs_to_vars", "split_list", "vars_to_refs"]


def _executing_eagerly() -> bool:
    """True outside of functions and graphs."""
    return bool(tf.executing_eagerly())


def _make_subgraph(f: Any) -> Any:
    """Decorator: `f` as a function of TensorFlow."""
    return tf.function(f)


def vars_to_refs(vars: Any) -> Any:  # noqa: A002  Horovod's name
    """Variables in a form that can be put into sets and dictionaries: lists become tuples of references, at any depth."""
    return tuple(vars_to_refs(each) for each in vars) if isinstance(vars, list) else vars.ref()


def refs_to_vars(refs: Any) -> Any:
    """The variables that vars_to_refs() was given."""
    return [refs_to_vars(each) for each in refs] if isinstance(refs, tuple) else refs.deref()
