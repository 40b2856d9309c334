"""`optimizer.variables` of Keras 3 as a list that can be called. In Keras 2 it is a method, and scripts for Keras 2
write `optimizer.variables()`.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

_MODULE = "keras.src.optimizers"  # of Keras 3, with the classes of all its optimizers


class CallableList(list):  # type: ignore[type-arg]
    """A list that returns itself when it is called."""

    def __call__(self) -> CallableList:
        return self


def install() -> None:
    """Changes the optimizers of Keras 3 for the whole process if Keras is imported, as it is after `import tensorflow`.
    Does nothing with Keras 2.
    """
    module = sys.modules.get(_MODULE)
    if module is not None:
        change(module)


def change(module: Any) -> None:
    """Changes the classes of `module`, and the classes that they inherit from. A second call does nothing."""
    classes = {base for value in vars(module).values() if isinstance(value, type) for base in value.__mro__}
    for each in classes:
        own = vars(each).get("variables")
        if isinstance(own, property) and own.fget is not None and not hasattr(own.fget, "__wrapped__"):
            each.variables = property(_callable(own.fget))  # type: ignore[attr-defined]


def _callable(own: Any) -> Any:
    @functools.wraps(own)
    def variables(self: Any) -> Any:
        found = own(self)
        return CallableList(found) if type(found) is list else found

    return variables
