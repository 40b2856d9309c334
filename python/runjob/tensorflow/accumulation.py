"""Gradients that are added up over several backward passes before they are reduced and applied: backward_passes_per_step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from .gradients import GradientReduction, identity


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
        self._sums: dict[tuple[Any, ...], _Sums] = {}

    def step(self, gradients: Sequence[Any], variables: Sequence[Any], apply: Callable[[list[Any]], Any]) -> Any:
        """Takes the gradients of one backward pass, and calls `apply` with the reduced ones when they are a step's last. Each list of
        variables has passes of its own.

        In a function both ways are part of the graph. A gradient may be None in some passes of a step: those of the others add up. One
        that has come in any step is not None again, but zeros. Where the last pass is a function that was traced before the gradient had
        ever come, it is a part of a later step.
        """
        if self.passes == 1:
            return apply(self.reduction.reduced(gradients, variables))
        given = [tf.convert_to_tensor(gradient) if gradient is not None else None for gradient in gradients]
        sums = self._sums.setdefault(tuple(map(identity, variables)), _Sums())
        count = sums.add(given, variables)
        return tf.cond(tf.equal(count, self.passes), lambda: self._finish(sums, variables, apply), lambda: tf.constant(False))

    def _finish(self, sums: _Sums, variables: Sequence[Any], apply: Callable[[list[Any]], Any]) -> Any:
        totals = sums.totals()
        averages = totals
        if self._averages:
            averages = [None if total is None else total / tf.cast(self.passes, total.dtype) for total in totals]
        applied = apply(self.reduction.reduced(averages, variables))
        # A graph of TensorFlow 1 runs only what the result depends on.
        before = [each for each in (*totals, applied) if isinstance(each, (tf.Tensor, tf.Operation))]
        with tf.control_dependencies(before):
            resets = sums.reset()
        with tf.control_dependencies(resets):
            return tf.constant(True)


class _Sums:
    """The gradients of some variables, added up since their last step."""

    def __init__(self) -> None:
        self._sums: list[Any] = []
        self._have_come: list[bool] = []  # the gradients, in any pass so far
        self._count: Any = None

    def add(self, gradients: Sequence[Any], variables: Sequence[Any]) -> Any:
        """Returns how many have been added."""
        self._prepare(gradients, variables)
        pairs = zip(self._sums, gradients)
        added = [total.assign_add(tf.cast(gradient, total.dtype)) for total, gradient in pairs if gradient is not None]
        with tf.control_dependencies(added):
            return self._count.assign_add(1)

    def totals(self) -> list[Any]:
        """The sums; None of a gradient that has never come."""
        return [total.read_value() if has_come else None for total, has_come in zip(self._sums, self._have_come)]

    def reset(self) -> list[Any]:
        """Begins a step. Returns the assignments."""
        sums = [total for total, has_come in zip(self._sums, self._have_come) if has_come]
        return [self._count.assign(0), *(total.assign(tf.zeros_like(total)) for total in sums)]

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
