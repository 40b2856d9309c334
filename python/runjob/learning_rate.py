"""The learning rate of an optimizer of Keras, with any backend, and the momentum that goes with it."""

from __future__ import annotations

from typing import Any


class LearningRate:
    """The learning rate of one optimizer.

    Momentum  a step with rate r and momentum m adds m times what was added before, of another rate r'. The paper on large minibatches corrects
              m by r / r' for the step in which the rate changes. Only where m is a variable: a number is part of the compiled step.
    Errors    ValueError for a rate that is a schedule of Keras's own.
    """

    def __init__(self, optimizer: Any, corrects_momentum: bool) -> None:
        optimizer = getattr(optimizer, "inner_optimizer", optimizer)  # the optimizer inside one that scales the loss
        rate = getattr(optimizer, "_learning_rate", None)
        if any(cls.__name__ == "LearningRateSchedule" for cls in type(rate).__mro__):  # the class of any version of Keras
            raise ValueError(
                f"the optimizer's learning rate is a {type(rate).__name__}, which callbacks cannot set; give it a number as learning_rate"
            )
        self._optimizer = optimizer
        momentum = getattr(optimizer, "momentum", None)
        self._momentum = momentum if corrects_momentum and hasattr(momentum, "assign") else None
        self._kept: Any = None

    def get(self) -> float:
        """Returns the rate."""
        rate = self._optimizer.learning_rate
        return float(rate.numpy() if hasattr(rate, "numpy") else rate)

    def set(self, rate: float) -> None:
        """Sets the rate, and corrects the momentum until restore_momentum()."""
        before = self.get()
        if rate == before:
            return
        self._optimizer.learning_rate = rate
        if self._momentum is not None and before > 0:
            self._kept = self._momentum.numpy() if self._kept is None else self._kept
            self._momentum.assign(self._kept * rate / before)

    def restore_momentum(self) -> None:
        """Restores the momentum after the step."""
        if self._momentum is not None and self._kept is not None:
            self._momentum.assign(self._kept)
            self._kept = None
