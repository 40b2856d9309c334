"""Makes optimizers of Keras 3, Keras 2 and tf.keras.optimizers.legacy step on reduced gradients."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from .. import keras_optimizer
from .accumulation import Accumulation


class _Keras3(keras_optimizer.Distributed):
    def apply(self, grads: Any, trainable_variables: Any = None) -> Any:
        """Applies the gradients as the optimizer's own apply() does, after their reduction over the ranks."""
        gradients = list(grads)
        if trainable_variables is None:
            variables = list(self._trainable_variables)  # type: ignore[attr-defined]
        else:
            variables = list(trainable_variables)
            if not self.built:  # type: ignore[attr-defined]  # outside of tf.cond, because it makes variables
                with tf.init_scope():
                    self.build(variables)  # type: ignore[attr-defined]
        own = super().apply  # type: ignore[misc]
        return self._accumulation.step(gradients, variables, lambda reduced: own(reduced, trainable_variables))


class _Keras2(keras_optimizer.Distributed):
    def apply_gradients(self, grads_and_vars: Any, *arguments: Any, **options: Any) -> Any:
        """Applies the gradients as the optimizer's own apply_gradients() does, after their reduction over the ranks."""
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
    """Makes the optimizer's own variables, which it would otherwise make in its first step."""
    if hasattr(optimizer, "_create_all_weights"):
        optimizer._create_all_weights(variables)
    elif hasattr(optimizer, "build"):
        optimizer.build(variables)


def distribute(optimizer: Any, accumulation: Accumulation) -> Any:
    """Calls keras_optimizer.distribute(). Errors  ValueError, also for a value that is not an optimizer of Keras."""
    own = type(optimizer)
    if not hasattr(optimizer, "apply_gradients"):
        raise ValueError(f"DistributedOptimizer takes an optimizer of Keras or of tf.compat.v1.train, not {own.__name__}")
    return keras_optimizer.distribute(optimizer, _Keras3 if hasattr(own, "apply") else _Keras2, accumulation, tf.keras.Model)
