"""Gradients that are added up over several backward passes before they are reduced and applied: backward_passes_per_step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from .gradients import GradientReduction


class Accumulation:
    """Of one optimizer.

    passes    how many add up to a step. With 1, gradients are reduced and applied each time.
    averages  whether the sum is divided by `passes`.
    Errors    ValueError unless `passes` is positive.
    """

    def __init__(self, reduction: GradientReduction, passes: int, averages: bool) -> None:
        if not isinstance(passes, int) or passes < 1:
            raise ValueError(f"backward_passes_per_step={passes!r}: give a positive number")
        self.reduction = reduction
        self.passes = passes
        self._averages = averages
        self._sums: list[Any] = []
        self._have_come: list[bool] = []  # the gradients, in any pass so far
        self._count: Any = None

    def step(self, gradients: Sequence[Any], variables: Sequence[Any], apply: Callable[[list[Any]], Any]) -> Any:
        """Takes the gradients of one backward pass, and calls `apply` with the reduced ones when they are a step's last.

        In a function both ways are part of the graph. A gradient may be None in some passes of a step: those of the others add up. One
        that has come in any step is not None again, but zeros. Where the last pass is a function that was traced before the gradient had
        ever come, it is a part of a later step.
        """
        if self.passes == 1:
            return apply(self.reduction.reduced(gradients, variables))
        given = [tf.convert_to_tensor(gradient) if gradient is not None else None for gradient in gradients]
        self._prepare(given, variables)
        for total, gradient in zip(self._sums, given):
            if gradient is not None:
                total.assign_add(tf.cast(gradient, total.dtype))
        is_last = tf.equal(self._count.assign_add(1), self.passes)
        return tf.cond(is_last, lambda: self._finish(variables, apply), lambda: tf.constant(False))

    def _prepare(self, gradients: Sequence[Any], variables: Sequence[Any]) -> None:
        """A function that is traced makes variables in its first call only, so there is a sum for each gradient from then on."""
        if self._count is None:
            with tf.init_scope():  # variables outlive the function that is traced
                self._count = tf.Variable(0, trainable=False, name="backward_passes")
                for gradient, variable in zip(gradients, variables):
                    zeros = tf.zeros(tuple(variable.shape), variable.dtype if gradient is None else gradient.dtype)
                    self._sums.append(tf.Variable(zeros, trainable=False, name="gradient_sum"))
            self._have_come = [False] * len(gradients)
        self._have_come = [has_come or gradient is not None for has_come, gradient in zip(self._have_come, gradients)]

    def _finish(self, variables: Sequence[Any], apply: Callable[[list[Any]], Any]) -> Any:
        totals = [total.read_value() if has_come else None for total, has_come in zip(self._sums, self._have_come)]
        if self._averages:
            totals = [None if total is None else total / tf.cast(self.passes, total.dtype) for total in totals]
        reduced = self.reduction.reduced(totals, variables)
        self._count.assign(0)
        for total, has_come in zip(self._sums, self._have_come):
            if has_come:
                total.assign(tf.zeros_like(total))
        apply(reduced)
        return tf.constant(True)
