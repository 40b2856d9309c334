"""Gives all ranks the same variables at the start. Python objects are in objects.py."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import tensorflow as tf

from .. import objects, process_sets
from ..process_sets import ProcessSet, global_process_set
from . import nodes
from .nodes import Naming

#: dtypes of variables that collectives do not have, and the dtypes as which their bytes are sent.
_AS_BYTES = {tf.uint32: tf.int32, tf.uint64: tf.int64, tf.complex64: tf.int32, tf.complex128: tf.int32}


def assignable(variables: Iterable[Any]) -> list[Any]:
    """The variables among a model's values. Keras 2 lists the vocabulary of a text layer among them, which is not a
    variable.
    """
    return [each for each in variables if hasattr(each, "assign")]


def broadcast_(
    variables: Iterable[Any], root_rank: int, name: str | None = None, process_set: ProcessSet = global_process_set
) -> Any:
    """Gives `variables`, of TensorFlow or Keras, root_rank's values, as one operation. Returns the variables. In a
    graph of TensorFlow 1 it returns their new values, in the same order: running one of them runs its assignment.

    variables  the same number, shapes and dtypes in the same order on all ranks.
    Errors     as broadcast().
    """
    given = list(variables)
    if not given:
        return given
    values = [_as_sent(tf.convert_to_tensor(variable)) for variable in given]
    set_id = process_sets.identifier(process_set)
    received = nodes.run(nodes.GROUPED_BROADCAST, (values,), Naming(name), set_id, root_rank=root_rank)
    assigned = [variable.assign(_as_kept(value, variable)) for variable, value in zip(given, received)]
    if tf.compat.v1.executing_eagerly_outside_functions():
        return given
    return assigned


def broadcast_variables(
    variables: Iterable[Any], root_rank: int, process_set: ProcessSet = global_process_set, inplace: bool = False
) -> Any:
    """broadcast_() with a single operation as the result in a graph of TensorFlow 1. `inplace` has no effect."""
    found = broadcast_(variables, root_rank, process_set=process_set)
    return found if tf.compat.v1.executing_eagerly_outside_functions() else tf.group(*(each for each in found if each is not None))


def broadcast_global_variables(root_rank: int) -> Any:
    """An operation that gives all variables of a graph of TensorFlow 1 the values of root_rank.

    Errors  RuntimeError with eager execution, which has no list of all variables.
    """
    if tf.executing_eagerly():
        raise RuntimeError(
            "broadcast_global_variables() is for graphs of TensorFlow 1; with eager execution use "
            "broadcast_variables(model.variables, root_rank=0)"
        )
    return broadcast_variables(tf.compat.v1.global_variables(), root_rank)


class BroadcastGlobalVariablesHook(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
    """Runs broadcast_global_variables() when a session of TensorFlow 1 has begun. `device` is a tf.device() for the
    operation.
    """

    def __init__(self, root_rank: int, device: str = "") -> None:
        super().__init__()
        self._root_rank = root_rank
        self._device = device
        self._operation: Any = None

    def begin(self) -> None:
        if self._operation is None or self._operation.graph is not tf.compat.v1.get_default_graph():
            with tf.device(self._device or None):
                self._operation = broadcast_global_variables(self._root_rank)

    def after_create_session(self, session: Any, coord: Any) -> None:
        session.run(self._operation)


def broadcast_object(
    obj: Any, root_rank: int = 0, session: Any = None, name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> Any:  # fmt: skip
    """Sends root_rank's `obj` to every rank, as objects.broadcast_object(). `session` has no effect, because no graph
    is needed.
    """
    return objects.broadcast_object(obj, root_rank, name, process_set)


def broadcast_object_fn(
    root_rank: int = 0, session: Any = None, name: str | None = None, process_set: ProcessSet = global_process_set
) -> Callable[[Any], Any]:
    """Returns broadcast_object() as a function of the object alone."""
    return lambda obj: broadcast_object(obj, root_rank, session, name, process_set)


def allgather_object(
    obj: Any, session: Any = None, name: str | None = None, process_set: ProcessSet = global_process_set
) -> list[Any]:
    """The `obj` of every rank of the set, in rank order. `session` has no effect."""
    return objects.allgather_object(obj, name, process_set)


def _as_sent(value: Any) -> Any:
    return tf.bitcast(value, _AS_BYTES[value.dtype]) if value.dtype in _AS_BYTES else value


def _as_kept(value: Any, variable: Any) -> Any:
    dtype = tf.as_dtype(variable.dtype)
    return tf.bitcast(value, dtype) if dtype in _AS_BYTES else value
