"""Refuses operations inside of a function that XLA compiles, while it is traced, because XLA cannot compile them."""

from __future__ import annotations

from typing import Any

import tensorflow as tf


def refuse(operation: str) -> None:
    """Errors  ValueError if XLA is going to compile the function that is being traced."""
    if not tf.executing_eagerly() and _is_compiled(tf.compat.v1.get_default_graph()):
        raise ValueError(
            f"{operation} is inside of a function that XLA compiles, which it cannot be. Write tf.function without "
            "jit_compile=True, or model.compile(..., jit_compile=False), around collectives; functions that it calls may be compiled"
        )


def _is_compiled(graph: Any) -> bool:
    """True if `graph`, or one that contains it, belongs to a function with jit_compile=True."""
    while graph is not None:
        context = graph._get_control_flow_context()
        while context is not None:
            if context.IsXLAContext():
                return True
            context = context.outer_context
        graph = getattr(graph, "outer_graph", None)
    return False
