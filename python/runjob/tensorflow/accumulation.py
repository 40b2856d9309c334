"""Adds up gradients over several backward passes before they are reduced and applied: backward_passes_per_step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from ..reduce_ops import Adasum
from .gradients import GradientReduction, identity


class Accumulation:
    """The accumulation of one optimizer's gradients.

    passes    the number of passes that make a step. With 1, gradients are reduced and applied each time.
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
        """Takes the gradients of one backward pass. If the pass is the last one of a step, calls `apply` with the
        reduced gradients. The passes of each list of variables are counted separately.

        In a function both cases are part of the graph. A gradient may be None in some passes of a step; the gradients
        of the other passes are added up. After a gradient has been computed in any step, it is zeros instead of None.
        If the last pass is a function that was traced before the gradient was first computed, the gradient becomes part
        of a later step.
        """
        if self.passes == 1:
            return apply(self._reduced(gradients, variables))
        given = [tf.convert_to_tensor(gradient) if gradient is not None else None for gradient in gradients]
        sums = self._sums.setdefault(tuple(map(identity, variables)), _Sums())
        count = sums.add(given, variables)
        return tf.cond(tf.equal(count, self.passes), lambda: self._finish(sums, variables, apply), lambda: tf.constant(False))

    def _finish(self, sums: _Sums, variables: Sequence[Any], apply: Callable[[list[Any]], Any]) -> Any:
        totals = sums.totals()
        averages = totals
        if self._averages:
            averages = [None if total is None else total / tf.cast(self.passes, total.dtype) for total in totals]
        applied = apply(self._reduced(averages, variables))
        # A graph of TensorFlow 1 runs only the operations that the result depends on.
        before = [each for each in (*totals, applied) if isinstance(each, (tf.Tensor, tf.Operation))]
        with tf.control_dependencies(before):
            resets = sums.reset()
        with tf.control_dependencies(resets):
            return tf.constant(True)


    def _reduced(self, gradients: Sequence[Any], variables: Sequence[Any]) -> Any:
        """With Adasum, the changes of the variables are reduced instead of the gradients."""
        return list(gradients) if self.reduction.op == Adasum else self.reduction.reduced(gradients, variables)


class _Sums:
    """The sums of some variables' gradients since their last step."""

    def __init__(self) -> None:
        self._sums: list[Any] = []
        self._were_computed: list[bool] = []  # for each gradient, whether any pass so far has computed it
        self._count: Any = None

    def add(self, gradients: Sequence[Any], variables: Sequence[Any]) -> Any:
        """Adds the gradients of a pass. Returns the number of passes that have been added."""
        self._prepare(gradients, variables)
        pairs = zip(self._sums, gradients)
        added = [total.assign_add(tf.cast(gradient, total.dtype)) for total, gradient in pairs if gradient is not None]
        with tf.control_dependencies(added):
            return self._count.assign_add(1)

    def totals(self) -> list[Any]:
        """The sums. None for a gradient that no pass has ever computed."""
        return [total.read_value() if has_come else None for total, has_come in zip(self._sums, self._were_computed)]

    def reset(self) -> list[Any]:
        """Begins a step. Returns the assignments that do so."""
        sums = [total for total, has_come in zip(self._sums, self._were_computed) if has_come]
        return [self._count.assign(0), *(total.assign(tf.zeros_like(total)) for total in sums)]

    def _prepare(self, gradients: Sequence[Any], variables: Sequence[Any]) -> None:
        """Makes a variable for the sum of each gradient. A function that is traced makes variables only in its first
        call, so all of them are made then.
        """
        if self._count is None:
            with tf.init_scope():  # variables must outlive the function that is traced
                self._count = tf.Variable(0, trainable=False, name="backward_passes")
                for gradient, variable in zip(gradients, variables):
                    zeros = tf.zeros(tuple(variable.shape), variable.dtype if gradient is None else gradient.dtype)
                    self._sums.append(tf.Variable(zeros, trainable=False, name="gradient_sum"))
            self._were_computed = [False] * len(gradients)
        self._were_computed = [has_come or gradient is not None for has_come, gradient in zip(self._were_computed, gradients)]
