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
        self._count: Any = None

    def step(self, gradients: Sequence[Any], variables: Sequence[Any], apply: Callable[[list[Any]], Any]) -> Any:
        """Takes the gradients of one backward pass, and calls `apply` with the reduced ones when they are a step's last.

        In a function both ways are part of the graph.
        """
        if self.passes == 1:
            return apply(self.reduction.reduced(gradients, variables))
        given = [tf.convert_to_tensor(gradient) if gradient is not None else None for gradient in gradients]
        self._prepare(given, variables)
        for total, gradient in zip(self._sums, given):
            if gradient is not None:
                total.assign_add(gradient)
        is_last = tf.equal(self._count.assign_add(1), self.passes)
        return tf.cond(is_last, lambda: self._finish(given, variables, apply), lambda: tf.constant(False))

    def _prepare(self, gradients: Sequence[Any], variables: Sequence[Any]) -> None:
        if self._count is not None:
            return
        with tf.init_scope():  # variables outlive the function that is traced
            self._count = tf.Variable(0, trainable=False, name="backward_passes")
            self._sums = [
                None
                if gradient is None
                else tf.Variable(tf.zeros(tuple(variable.shape), gradient.dtype), trainable=False, name="gradient_sum")
                for gradient, variable in zip(gradients, variables)
            ]

    def _finish(self, gradients: Sequence[Any], variables: Sequence[Any], apply: Callable[[list[Any]], Any]) -> Any:
        totals = [None if gradient is None else total.read_value() for total, gradient in zip(self._sums, gradients)]
        if self._averages:
            totals = [None if total is None else total / tf.cast(self.passes, total.dtype) for total in totals]
        reduced = self.reduction.reduced(totals, variables)
        self._count.assign(0)
        for total in self._sums:
            if total is not None:
                total.assign(tf.zeros_like(total))
        apply(reduced)
        return tf.constant(True)
