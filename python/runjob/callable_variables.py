"""`optimizer.variables` of Keras 3 as a list that can be called: a method in Keras 2, whose scripts write `optimizer.variables()`."""

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
    """Changes the optimizers of Keras 3 for the whole process, when Keras is imported: `import tensorflow` does that. Keras 2 stays as it
    is."""
    module = sys.modules.get(_MODULE)
    if module is not None:
        change(module)


def change(module: Any) -> None:
    """Changes the classes of `module`, and those that they inherit from. A second call does nothing."""
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
