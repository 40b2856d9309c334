"""compile() and fit() of Keras's models, as scripts call them that know nothing of Keras 3.

Keras 3 compiles training steps by XLA unless told otherwise (jit_compile="auto"), which takes no collectives. Models that train with us
are not compiled; that is said once. And some arguments of Keras 2, which Horovod's scripts give, Keras 3 has forgotten."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any

# Of fit(), evaluate() and predict() in Keras 2, for data sets that are Python generators: of Keras 3's own data sets, they are attributes.
_FORGOTTEN = ("workers", "use_multiprocessing", "max_queue_size")

_watched: set[type[Any]] = set()
_has_warned = False


def watch(model: Any, is_distributed: Callable[[Any], bool], compiled: Callable[[Any], None]) -> None:
    """Has compile() of models not turn XLA on for a distributed optimizer, from now on, unless the program says jit_compile=True, and
    take experimental_run_tf_function=, without effect. fit() and its like take workers= of such models, with a warning.

    model           Keras's class.
    is_distributed  whether an optimizer is.
    compiled        is called with the optimizer that a model has after compile(): Keras puts one that scales the loss around the program's.
    """
    if model in _watched:
        return
    _watched.add(model)

    def is_ours(optimizer: Any) -> bool:
        return is_distributed(optimizer) or is_distributed(getattr(optimizer, "inner_optimizer", None))

    # Where it is defined: Keras loads models whose classes have another one of their own in another way.
    owner = next(cls for cls in model.__mro__ if "compile" in vars(cls))
    own = owner.compile

    @functools.wraps(own)
    def compile(self: Any, *arguments: Any, **options: Any) -> Any:
        options.pop("experimental_run_tf_function", None)
        result = own(self, *arguments, **options)
        compiled(getattr(self, "optimizer", None))
        if options.get("jit_compile", "auto") == "auto" and is_ours(getattr(self, "optimizer", None)):
            turn_off_xla(self)
        return result

    owner.compile = compile
    for method in ("fit", "evaluate", "predict"):
        _let_take_forgotten_arguments(model, method, is_ours)


def _let_take_forgotten_arguments(model: Any, method: str, is_ours: Callable[[Any], bool]) -> None:
    owner = next(cls for cls in model.__mro__ if method in vars(cls))
    own = getattr(owner, method)
    forgotten = set(_FORGOTTEN) - set(inspect.signature(own).parameters)
    if not forgotten:  # Keras 2
        return

    @functools.wraps(own)
    def call(self: Any, *arguments: Any, **options: Any) -> Any:
        given = sorted(forgotten & options.keys())
        if given and is_ours(getattr(self, "optimizer", None)):
            for name in given:
                del options[name]
            warnings.warn(
                f"{method}() of Keras 3 has no {', '.join(given)}: it is left out; a keras.utils.PyDataset takes it instead", stacklevel=2
            )
        return own(self, *arguments, **options)

    setattr(owner, method, call)


def turn_off_xla(model: Any) -> None:
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

