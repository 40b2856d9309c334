"""compile() and fit() of Keras's models, for scripts that were not written for Keras 3.

By default (jit_compile="auto") Keras 3 compiles training steps with XLA, which cannot contain collectives. Models with
a distributed optimizer are not compiled, and one warning reports this. Keras 3 has also dropped some arguments of Keras
2, which scripts for Horovod pass. And a callback that stops the training, or changes the learning rate, by a metric of
its own rank makes ranks differ.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any

from . import job, keras_callbacks

# Arguments of fit(), evaluate() and predict() in Keras 2, for data sets that are Python generators. In Keras 3 they are
# attributes of its own data sets.
_FORGOTTEN = ("workers", "use_multiprocessing", "max_queue_size")

_watched: set[type[Any]] = set()
_has_warned = False


def watch(model: Any, is_distributed: Callable[[Any], bool], compiled: Callable[[Any], None]) -> None:
    """Changes compile() of models from now on. It does not turn XLA on for a distributed optimizer unless the program
    passes jit_compile=True, and takes experimental_run_tf_function= without effect. fit(), evaluate() and predict() of
    such models take workers= and its like, with a warning. fit() warns of callbacks that decide by a metric of one rank.

    model           Keras's class of models.
    is_distributed  a function that is true for a distributed optimizer.
    compiled        a function that is called with the optimizer of a model after compile(). Keras may have put one that
                    scales the loss around the program's.
    """
    if model in _watched:
        return
    _watched.add(model)

    def is_ours(optimizer: Any) -> bool:
        return is_distributed(optimizer) or is_distributed(getattr(optimizer, "inner_optimizer", None))

    # The class that defines compile(): Keras loads models whose classes define it themselves in another way.
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
    _warn_of_deciding_callbacks(model, is_ours)


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


def _warn_of_deciding_callbacks(model: Any, is_ours: Callable[[Any], bool]) -> None:
    owner = next(cls for cls in model.__mro__ if "fit" in vars(cls))
    own = owner.fit
    signature = inspect.signature(own)

    @functools.wraps(own)
    def fit(self: Any, *arguments: Any, **options: Any) -> Any:
        callbacks = None
        with contextlib.suppress(TypeError):  # wrong arguments, which Keras names
            callbacks = signature.bind_partial(self, *arguments, **options).arguments.get("callbacks")
        alone = keras_callbacks.deciding_alone(callbacks)
        if alone and is_ours(getattr(self, "optimizer", None)) and job.size() > 1:
            warnings.warn(
                f"{', '.join(alone)} in callbacks= decides by the metrics of this rank alone: ranks may stop in different epochs, or "
                "train with different learning rates; put MetricAverageCallback() before it",
                stacklevel=2,
            )
        return own(self, *arguments, **options)

    owner.fit = fit


def turn_off_xla(model: Any) -> None:
    """Turns XLA off for one model, before its training step is made. Warns the first time that this changes a model."""
    global _has_warned
    if not getattr(model, "jit_compile", False):
        return
    model.jit_compile = False
    if not _has_warned:
        _has_warned = True
        warnings.warn(
            "XLA cannot compile collectives: this model trains without it, as with model.compile(..., jit_compile=False)", stacklevel=3
        )

