"""Optimizers of tf.compat.v1.train, made to step on reduced gradients."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from .accumulation import Accumulation


class GraphOptimizer(tf.compat.v1.train.Optimizer):  # type: ignore[misc]
    """An optimizer that wraps another one. compute_gradients() reduces the gradients, so that programs can change the
    reduced ones before they are applied. With several backward passes for a step, apply_gradients() reduces them.
    """

    def __init__(self, optimizer: Any, name: str | None, use_locking: bool, accumulation: Accumulation) -> None:
        super().__init__(name=name or f"Distributed{type(optimizer).__name__}", use_locking=use_locking)
        self._optimizer = optimizer
        self._accumulation = accumulation

    def compute_gradients(self, *arguments: Any, **options: Any) -> Any:
        """The gradients that the optimizer computes, reduced over the ranks."""
        pairs = self._optimizer.compute_gradients(*arguments, **options)
        if self._accumulation.passes > 1:
            return pairs
        variables = [variable for _, variable in pairs]
        return list(zip(self._accumulation.reduction.reduced([gradient for gradient, _ in pairs], variables), variables))

    def apply_gradients(self, *arguments: Any, **options: Any) -> Any:
        """Applies gradients by the optimizer. With several backward passes for a step, reduces them first."""
        if self._accumulation.passes == 1:
            return self._optimizer.apply_gradients(*arguments, **options)
        pairs = list(options.pop("grads_and_vars", None) or arguments[0])
        variables = [variable for _, variable in pairs]

        def apply(reduced: list[Any]) -> Any:
            return self._optimizer.apply_gradients(list(zip(reduced, variables)), *arguments[1:], **options)

        return self._accumulation.step([gradient for gradient, _ in pairs], variables, apply)

    def register_local_var(self, var: Any) -> None:
        """Excludes the gradients of a variable from the reduction."""
        self._accumulation.reduction.register_local(var)

    def get_slot(self, *arguments: Any, **options: Any) -> Any:
        """The slot of the optimizer."""
        return self._optimizer.get_slot(*arguments, **options)

    def get_slot_names(self, *arguments: Any, **options: Any) -> Any:
        """The names of the optimizer's slots."""
        return self._optimizer.get_slot_names(*arguments, **options)

    def variables(self, *arguments: Any, **options: Any) -> Any:
        """The variables of the optimizer."""
        return self._optimizer.variables(*arguments, **options)


class AdasumGraphOptimizer(GraphOptimizer):
    """An optimizer that lets another one step on this rank's gradients, reduces the changes of the variables, and adds
    them to the variables as they were before. With several backward passes for a step, the other one steps on the sum of
    their gradients.
    """

    def compute_gradients(self, *arguments: Any, **options: Any) -> Any:
        """The gradients that the optimizer computes on this rank."""
        return self._optimizer.compute_gradients(*arguments, **options)

    def apply_gradients(self, grads_and_vars: Any, *arguments: Any, **options: Any) -> Any:
        """Lets the optimizer apply the gradients, and reduces the changes of all variables, except local ones. All ranks
        must call it.
        """
        pairs = list(grads_and_vars)
        variables = [variable for _, variable in pairs]
        reduction = self._accumulation.reduction
        common = [variable for variable in variables if not reduction.is_local(variable)]

        def apply(gradients: list[Any]) -> Any:
            before = [tf.raw_ops.DeepCopy(x=variable) for variable in common]  # a read could have the variable's memory
            with tf.control_dependencies(before):
                applied = self._optimizer.apply_gradients(list(zip(gradients, variables)), *arguments, **options)
            with tf.control_dependencies([applied] if isinstance(applied, tf.Operation) else []):
                changes = [variable.read_value() - start for variable, start in zip(common, before)]
            reduced = reduction.reduced(changes, common)
            assigned = [variable.assign(start + change) for variable, start, change in zip(common, before, reduced)]
            return None if tf.executing_eagerly() else tf.group(*assigned)

        return self._accumulation.step([gradient for gradient, _ in pairs], variables, apply)
