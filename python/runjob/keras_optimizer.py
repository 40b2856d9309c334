"""Makes an optimizer of Keras a distributed one, for all backends of Keras."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from . import model_methods


class Distributed:
    """The mixin class in front of an optimizer's own class. `_accumulation` is that of its backend, which reduces the
    gradients.
    """

    _accumulation: Any

    def register_local_var(self, var: Any) -> None:
        """Excludes the gradients of a variable from the reduction."""
        self._accumulation.reduction.register_local(var)

    def __reduce__(self) -> Any:
        raise TypeError("a distributed optimizer belongs to its job and cannot be pickled; pickle its get_config() and variables")


def is_distributed(optimizer: Any) -> bool:
    """True if distribute() has changed the optimizer."""
    return isinstance(optimizer, Distributed)


def distribute(optimizer: Any, mixin: type[Distributed], accumulation: Any, model: Any) -> Any:
    """`optimizer` itself, whose new class has the name of its own one and is saved as that.

    mixin  a mixin class that steps on reduced gradients.
    model  Keras's class of models.

    An optimizer that is distributed already gets the options of this call, keeps its local variables, and warns.
    """
    own = type(optimizer)
    if is_distributed(optimizer):
        accumulation.reduction.local |= optimizer._accumulation.reduction.local
        object.__setattr__(optimizer, "_accumulation", accumulation)
        warnings.warn(
            f"this {own.__name__} is distributed already: the options of this call replace those of the earlier one, and gradients are "
            "reduced once",
            stacklevel=4,
        )
        return optimizer
    _change(optimizer, mixin, accumulation)
    model_methods.watch(model, is_distributed, reduce_around)
    return optimizer


def _change(optimizer: Any, mixin: type[Distributed], accumulation: Any) -> None:
    own = type(optimizer)
    optimizer.__class__ = type(own.__name__, (mixin, own), {"__module__": _module(own), "__qualname__": own.__qualname__})
    object.__setattr__(optimizer, "_accumulation", accumulation)


def reduce_around(optimizer: Any) -> None:
    """Lets an optimizer of Keras 3 that scales the loss, and that has a distributed one inside, reduce the gradients in
    its place. It decides by the gradients whether it steps, and all ranks must decide alike. Does nothing with other
    optimizers.
    """
    inner: Any = getattr(optimizer, "inner_optimizer", None)
    if not is_distributed(inner) or is_distributed(optimizer) or not hasattr(type(optimizer), "apply"):
        return
    accumulation = inner._accumulation
    if not isinstance(accumulation, _Shared):
        accumulation = _Shared(accumulation)
        object.__setattr__(inner, "_accumulation", accumulation)
    _change(optimizer, type(inner).__bases__[0], accumulation)


class _Shared:
    """The accumulation of two optimizers, one inside the other. The inner one takes the gradients that the outer one
    has reduced without another reduction.
    """

    def __init__(self, accumulation: Any) -> None:
        self.reduction = accumulation.reduction
        self._accumulation = accumulation
        self._is_reduced = False

    def step(self, gradients: Sequence[Any], variables: Sequence[Any], apply: Callable[[list[Any]], Any]) -> Any:
        """Takes gradients as the accumulation's own step() does."""
        if self._is_reduced:
            return apply(list(gradients))

        def apply_reduced(reduced: list[Any]) -> Any:
            self._is_reduced = True
            try:
                return apply(reduced)
            finally:
                self._is_reduced = False

        return self._accumulation.step(gradients, variables, apply_reduced)


def variables_of(layers: Any) -> Iterable[Any]:
    """The trainable variables of a layer or of several layers; none for None. Errors  ValueError."""
    listed = [] if layers is None else layers if isinstance(layers, (list, tuple, set)) else [layers]
    for layer in listed:
        if not hasattr(layer, "trainable_weights"):
            raise ValueError(f"local_layers: {layer!r} is no layer of Keras")
        yield from layer.trainable_weights


def _module(own: type[Any]) -> str:
    """The name of the module in which Keras 3 finds the class when a saved model is loaded. A class of a program has
    the module that defines it.
    """
    if own.__module__.startswith(("keras.src.optimizers.", "keras.optimizers.")):
        return "keras.optimizers"
    return own.__module__
