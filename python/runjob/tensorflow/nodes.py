"""Makes each collective an operation of TensorFlow: an eager one, or a node of a graph.

Names   of an eager operation: the user's, or else the turn of the call among the calls of its kind (wire_names.py), so
        that all ranks call unnamed eager operations in the same order. In a graph it is the name of the node: unique in
        the graph, and the same on all ranks, because they build the same graph. Nodes run in any order, which may
        differ among ranks.
Errors  ValueError where XLA compiles. An operation that runs raises a tf.errors.OpError: InvalidArgumentError for
        arguments that can never work, FailedPreconditionError before init() and if ranks disagree, AbortedError after
        shutdown(), else UnknownError.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import tensorflow as tf

from .. import calls, grouped, handles
from ..wire_names import Turn
from . import xla
from .kernels import operations

ALLREDUCE, ALLGATHER, BROADCAST, ALLTOALL = calls.ALLREDUCE, calls.ALLGATHER, calls.BROADCAST, calls.ALLTOALL
REDUCESCATTER, BARRIER = calls.REDUCESCATTER, calls.BARRIER
GROUPED_ALLREDUCE, GROUPED_ALLGATHER = grouped.ALLREDUCE, grouped.ALLGATHER
GROUPED_REDUCESCATTER = grouped.REDUCESCATTER
GROUPED_BROADCAST = handles.Collective("grouped_broadcast")


class Naming(NamedTuple):
    """The user's choices for an operation's name."""

    name: str | None = None
    ignore_name_scope: bool = False


def run(kind: handles.Collective, inputs: tuple[Any, ...], naming: Naming, process_set: int, **attributes: Any) -> Any:
    """Runs a collective. Returns the operation's outputs in TensorFlow's form: one tensor, a list or a named tuple.

    process_set  the library's number of the set.
    """
    operation = getattr(operations(), f"horovod_{kind.name}")
    attributes.update(process_set_id=process_set, ignore_name_scope=naming.ignore_name_scope)
    if not tf.executing_eagerly():
        node = naming.name or _node_name(kind.name, inputs)
        xla.refuse(node)
        return operation(*inputs, name=node, **attributes)
    if naming.name:
        return operation(*inputs, tensor_name=naming.name, **attributes)
    turns, turn = kind.turns(process_set), Turn()
    try:
        return operation(*inputs, tensor_name=turns.begin(turn)[len(kind.name) + 1 :], **attributes)
    finally:
        turns.end(turn)


def _node_name(kind: str, inputs: tuple[Any, ...]) -> str:
    """A name such as `HorovodAllreduce_dense_MatMul_0`, after the first input."""
    first = inputs[0] if inputs else ""
    name = getattr(first[0] if isinstance(first, (list, tuple)) else first, "name", "")
    words = "".join(word.capitalize() for word in kind.split("_"))
    return f"Horovod{words}_{re.sub('[^a-zA-Z0-9_]', '_', name)}"
