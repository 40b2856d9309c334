"""The callbacks of Keras, for all its backends: mixin classes in front of Keras's own classes, which have `model` and
`params`.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable
from typing import Any

import numpy

from . import job
from .learning_rate import LearningRate


class MetricAverage:
    """Averages the metrics of an epoch over the ranks, for the later callbacks and for the history. An array is
    averaged element by element. All ranks have the same metrics.
    """

    def average(self, numbers: list[float]) -> list[float]:
        """The averages of the ranks' numbers."""
        raise NotImplementedError

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Replaces the values of `logs` by their averages."""
        found = {name: _numbers(value) for name, value in sorted((logs or {}).items())}
        arrays = {name: array for name, array in found.items() if array is not None}
        if not logs or not arrays:
            return
        averages = iter(self.average([number for array in arrays.values() for number in array.ravel().tolist()]))
        for name, array in arrays.items():
            average = numpy.reshape(list(itertools.islice(averages, array.size)), array.shape)
            logs[name] = average if array.ndim else float(average)


#: Keras's callbacks that change the training by a metric. Keras has a class of each name for each of its versions.
_DECIDING = frozenset({"EarlyStopping", "ReduceLROnPlateau"})


def deciding_alone(callbacks: Any) -> list[str]:
    """The names of the callbacks of fit() that change the training by a metric of this rank alone, because no
    MetricAverage comes before them.
    """
    listed = getattr(callbacks, "callbacks", callbacks)  # a CallbackList has it
    found = []
    for callback in listed if isinstance(listed, (list, tuple)) else [listed]:
        if isinstance(callback, MetricAverage):
            break
        if not _DECIDING.isdisjoint(cls.__name__ for cls in type(callback).__mro__):
            found.append(type(callback).__name__)
    return found


class LearningRateSchedule:
    """Multiplies the learning rate during some of the epochs.

    multiplier           a function of the epoch, which is a fraction within an epoch unless `staircase`. Or a number,
                         the factor from each epoch to the next: with 0.5 and start_epoch=2 the rate is initial_lr in
                         epoch 2, and half of that in epoch 3.
    start_epoch, end_epoch  the first epoch, and the first one after the last; None: no end.
    momentum_correction  scales the momentum with the rate in the step that changes the rate, if Keras keeps the
                         momentum in a variable.
    steps_per_epoch      needed without staircase if Keras does not know it.
    """

    model: Any
    params: Any

    def __init__(
        self, initial_lr: float, multiplier: float | Callable[[float], float], start_epoch: int = 0,
        end_epoch: int | None = None, staircase: bool = True, momentum_correction: bool = True,
        steps_per_epoch: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.initial_lr = initial_lr
        self.start_epoch = start_epoch
        self.end_epoch = end_epoch
        self.staircase = staircase
        self.momentum_correction = momentum_correction
        self.steps_per_epoch = steps_per_epoch
        self.current_epoch = 0
        self._multiplier = multiplier
        self._rate: LearningRate | None = None

    def multiplier(self, epoch: float) -> float:
        """The factor for an epoch."""
        if callable(self._multiplier):
            return float(self._multiplier(epoch))
        return float(self._multiplier ** (epoch - self.start_epoch))

    def on_train_begin(self, logs: Any = None) -> None:
        """Determines the steps of an epoch. Errors  ValueError if neither the caller nor Keras has given their number."""
        self._rate = LearningRate(self.model.optimizer, self.momentum_correction)
        if self.staircase or self.steps_per_epoch is not None:
            return
        self.steps_per_epoch = (self.params or {}).get("steps")
        if self.steps_per_epoch is None:
            raise ValueError(f"{type(self).__name__} with staircase=False needs steps_per_epoch=: Keras does not know how many there are")

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Remembers the epoch."""
        self.current_epoch = epoch

    def on_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Sets the rate for the batch."""
        is_within = self.start_epoch <= self.current_epoch and (self.end_epoch is None or self.current_epoch < self.end_epoch)
        if not is_within or self._rate is None:
            return
        if self.staircase and batch == 0:
            self._rate.set(self.initial_lr * self.multiplier(self.current_epoch))
        elif not self.staircase and self.steps_per_epoch is not None:
            self._rate.set(self.initial_lr * self.multiplier(self.current_epoch + batch / self.steps_per_epoch))

    def on_batch_end(self, batch: int, logs: Any = None) -> None:
        """Restores the momentum."""
        if self._rate is not None:
            self._rate.restore_momentum()

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Writes the rate into `logs`."""
        if logs is not None and self._rate is not None:
            logs["lr"] = self._rate.get()


class LearningRateWarmup(LearningRateSchedule):
    """Raises the learning rate from initial_lr / size to initial_lr during the first epochs, as in Goyal and others,
    "Accurate, Large Minibatch SGD", 2017.

    initial_lr  the final rate, usually that of one rank times the size.
    verbose     1: rank 0 prints a line when the final rate is reached.
    """

    def __init__(
        self, initial_lr: float, warmup_epochs: float = 5, momentum_correction: bool = True,
        steps_per_epoch: int | None = None, verbose: int = 0,
    ) -> None:  # fmt: skip
        def factor(epoch: float) -> float:
            size = job.size()
            epoch += 1.0 / (self.steps_per_epoch or 1)  # at the end of a batch
            return (epoch * (size - 1) / warmup_epochs + 1) / size

        super().__init__(initial_lr, factor, 0, warmup_epochs, False, momentum_correction, steps_per_epoch)  # type: ignore[arg-type]
        self.warmup_epochs = warmup_epochs
        self.verbose = verbose

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Writes the rate into `logs`, and prints a line when the final rate is reached."""
        super().on_epoch_end(epoch, logs)
        if self.verbose > 0 and job.rank() == 0 and epoch == self.warmup_epochs - 1 and self._rate is not None:
            print(f"\nEpoch {epoch + 1}: finished gradual learning rate warmup to {self._rate.get():g}.")


class BestModel:
    """A ModelCheckpoint that keeps only the best model. Set `filepath` before fit(), on the ranks that save."""

    def __init__(
        self, monitor: str = "val_loss", verbose: int = 0, save_weights_only: bool = False, mode: str = "auto",
        save_freq: str | int = "epoch",
    ) -> None:  # fmt: skip
        placeholder = "best.weights.h5" if save_weights_only else "best.keras"  # Keras checks the suffix
        super().__init__(placeholder, monitor, verbose, True, save_weights_only, mode, save_freq)  # type: ignore[call-arg]
        self.filepath: Any = None

    def on_train_begin(self, logs: Any = None) -> None:
        """Calls Keras's own function. Errors  ValueError without a filepath."""
        if self.filepath is None:
            raise ValueError("BestModelCheckpoint: set its `filepath` before model.fit()")
        super().on_train_begin(logs)  # type: ignore[misc]


def _numbers(value: Any) -> Any:
    """A metric as an array, without dimensions for a single number. None for a value that is not numeric."""
    with contextlib.suppress(TypeError, ValueError, RuntimeError):  # PyTorch's tensors raise the last
        return numpy.asarray(float(value))
    with contextlib.suppress(TypeError, ValueError, RuntimeError):
        array = numpy.asarray(value)
        return array if array.dtype.kind in "biuf" else None
    return None
