"""Optimizers of Keras 3, Keras 2 and tf.keras.optimizers.legacy, made to step on reduced gradients."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from .. import model_methods
from .accumulation import Accumulation


class _Distributed:
    """What distribute() puts in front of an optimizer's own class."""

    _accumulation: Accumulation

    def register_local_var(self, var: Any) -> None:
        """Leaves the gradients of a variable to each rank."""
        self._accumulation.reduction.register_local(var)

    def __reduce__(self) -> Any:
        raise TypeError("a distributed optimizer belongs to its job and cannot be pickled; pickle its get_config() and variables")


class _Keras3(_Distributed):
    def apply(self, grads: Any, trainable_variables: Any = None) -> Any:
        """The optimizer's own, with the gradients reduced over the ranks."""
        gradients = list(grads)
        if trainable_variables is None:
            variables = list(self._trainable_variables)  # type: ignore[attr-defined]
        else:
            variables = list(trainable_variables)
            if not self.built:  # type: ignore[attr-defined]  # outside of tf.cond: it makes variables
                with tf.init_scope():
                    self.build(variables)  # type: ignore[attr-defined]
        own = super().apply  # type: ignore[misc]
        return self._accumulation.step(gradients, variables, lambda reduced: own(reduced, trainable_variables))


class _Keras2(_Distributed):
    def apply_gradients(self, grads_and_vars: Any, *arguments: Any, **options: Any) -> Any:
        """The optimizer's own, with the gradients reduced over the ranks."""
        pairs = [(gradient, variable) for gradient, variable in grads_and_vars]
        variables = [variable for _, variable in pairs]
        if self._accumulation.passes > 1:
            with tf.init_scope():
                _build(self, variables)
        own = super().apply_gradients  # type: ignore[misc]

        def apply(reduced: list[Any]) -> Any:
            return own(list(zip(reduced, variables)), *arguments, **options)

        return self._accumulation.step([gradient for gradient, _ in pairs], variables, apply)


def _build(optimizer: Any, variables: list[Any]) -> None:
    """Has it make the variables of its own that it would else make when it steps first."""
    if hasattr(optimizer, "_create_all_weights"):
        optimizer._create_all_weights(variables)
    elif hasattr(optimizer, "build"):
        optimizer.build(variables)


def distribute(optimizer: Any, accumulation: Accumulation) -> Any:
    """`optimizer` itself, of a class that is called like its own and is saved as it. Errors  ValueError."""
    own = type(optimizer)
    if isinstance(optimizer, _Distributed):
        raise ValueError(f"this {own.__name__} is distributed already: DistributedOptimizer() was called with it before")
    if not hasattr(optimizer, "apply_gradients"):
        raise ValueError(f"DistributedOptimizer takes an optimizer of Keras or of tf.compat.v1.train, not {own.__name__}")
    mixin = _Keras3 if hasattr(own, "apply") else _Keras2
    optimizer.__class__ = type(own.__name__, (mixin, own), {"__module__": _module(optimizer), "__qualname__": own.__qualname__})
    object.__setattr__(optimizer, "_accumulation", accumulation)
    model_methods.watch(tf.keras.Model, is_distributed)
    return optimizer


def is_distributed(optimizer: Any) -> bool:
    """Whether distribute() has made it."""
    return isinstance(optimizer, _Distributed)


def _module(optimizer: Any) -> str:
    """Under which name Keras 3 finds the class when a saved model is loaded; that of a program's own class is its module's."""
    module: str = type(optimizer).__module__
    if module.startswith(("keras.src.optimizers.", "keras.optimizers.")):
        return "keras.optimizers"
    return module
