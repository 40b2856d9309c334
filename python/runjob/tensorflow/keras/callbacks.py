"""Callbacks for model.fit(). The first of them that a model meets also keeps Keras 3 from compiling its steps, see model_methods.py."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import tensorflow as tf

from ... import basics
from .. import functions, model_methods, operations
from .learning_rate import LearningRate


class _Callback(tf.keras.callbacks.Callback):  # type: ignore[misc]
    def set_model(self, model: Any) -> None:
        """Keras's own."""
        super().set_model(model)
        model_methods.turn_off_xla(model)


class BroadcastGlobalVariablesCallback(_Callback):
    """Gives all ranks root_rank's variables of the model and the optimizer, at the end of the first batch, when all of them are there.

    device           a tf.device() for the operation.
    local_variables  those that each rank keeps; register_local_var() adds one.
    """

    def __init__(self, root_rank: int, device: str = "", local_variables: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._root_rank = root_rank
        self._device = device
        self._local = {_identity(variable) for variable in local_variables or ()}
        self._is_done = False

    def register_local_var(self, var: Any) -> None:
        """Leaves a variable to each rank."""
        self._local.add(_identity(var))

    def on_batch_end(self, batch: int, logs: Any = None) -> None:
        """Broadcasts, once."""
        if self._is_done:
            return
        variables = self.model.optimizer.variables
        given = [*self.model.variables, *(variables() if callable(variables) else variables)]
        unique = {_identity(variable): variable for variable in given if _identity(variable) not in self._local}
        with tf.device(self._device or None):
            functions.broadcast_variables(unique.values(), self._root_rank)
        self._is_done = True


class MetricAverageCallback(_Callback):
    """Averages the metrics of an epoch over the ranks, for the callbacks after it and for the history. All ranks have the same metrics."""

    def __init__(self, device: str = "") -> None:
        super().__init__()
        self._device = device

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Replaces the values of `logs`."""
        numbers = sorted(name for name, value in (logs or {}).items() if _is_number(value))
        if not logs or not numbers:
            return
        with tf.device(self._device or None):
            values = operations.allreduce(tf.constant([float(logs[name]) for name in numbers], tf.float64))
        logs.update(zip(numbers, values.numpy().tolist()))


class LearningRateScheduleCallback(_Callback):
    """Multiplies the learning rate during some of the epochs.

    multiplier           a number, or a function of the epoch, a fraction within one unless `staircase`.
    start_epoch, end_epoch  the first one, and the first one after them; None: no end.
    momentum_correction  scales the momentum with the rate for the step that changes it, where Keras keeps it in a variable.
    steps_per_epoch      needed without staircase where Keras does not know it.
    """

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
        """Of an epoch."""
        return float(self._multiplier(epoch) if callable(self._multiplier) else self._multiplier)

    def on_train_begin(self, logs: Any = None) -> None:
        """Finds out what an epoch is. Errors  ValueError where nobody knows."""
        self._rate = LearningRate(self.model.optimizer, self.momentum_correction)
        if self.staircase or self.steps_per_epoch is not None:
            return
        self.steps_per_epoch = (self.params or {}).get("steps")
        if self.steps_per_epoch is None:
            raise ValueError(f"{type(self).__name__} with staircase=False needs steps_per_epoch=: Keras does not know how many there are")

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Notes the epoch."""
        self.current_epoch = epoch

    def on_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Sets the rate."""
        is_within = self.start_epoch <= self.current_epoch and (self.end_epoch is None or self.current_epoch < self.end_epoch)
        if not is_within or self._rate is None:
            return
        if self.staircase and batch == 0:
            self._rate.set(self.initial_lr * self.multiplier(self.current_epoch))
        elif not self.staircase and self.steps_per_epoch is not None:
            self._rate.set(self.initial_lr * self.multiplier(self.current_epoch + batch / self.steps_per_epoch))

    def on_batch_end(self, batch: int, logs: Any = None) -> None:
        """Gives the momentum back."""
        if self._rate is not None:
            self._rate.restore_momentum()

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Notes the rate in `logs`."""
        if logs is not None and self._rate is not None:
            logs["lr"] = self._rate.get()


class LearningRateWarmupCallback(LearningRateScheduleCallback):
    """Raises the learning rate from initial_lr / size to initial_lr during the first epochs: Goyal and others, "Accurate, Large Minibatch SGD",
    2017.

    initial_lr  the rate to arrive at, usually that of one rank times the size.
    verbose     1: rank 0 says when it has arrived.
    """

    def __init__(
        self, initial_lr: float, warmup_epochs: float = 5, momentum_correction: bool = True,
        steps_per_epoch: int | None = None, verbose: int = 0,
    ) -> None:  # fmt: skip
        def factor(epoch: float) -> float:
            size = basics.size()
            epoch += 1.0 / (self.steps_per_epoch or 1)  # at the end of a batch
            return (epoch * (size - 1) / warmup_epochs + 1) / size

        super().__init__(initial_lr, factor, 0, warmup_epochs, False, momentum_correction, steps_per_epoch)  # type: ignore[arg-type]
        self.warmup_epochs = warmup_epochs
        self.verbose = verbose

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Notes the rate in `logs`, and says so when it is the last one."""
        super().on_epoch_end(epoch, logs)
        if self.verbose > 0 and basics.rank() == 0 and epoch == self.warmup_epochs - 1 and self._rate is not None:
            print(f"\nEpoch {epoch + 1}: finished gradual learning rate warmup to {self._rate.get():g}.")


class BestModelCheckpoint(tf.keras.callbacks.ModelCheckpoint):  # type: ignore[misc]
    """tf.keras.callbacks.ModelCheckpoint that keeps the best model only. Set `filepath` before fit(), on the ranks that save."""

    def __init__(
        self, monitor: str = "val_loss", verbose: int = 0, save_weights_only: bool = False, mode: str = "auto",
        save_freq: str | int = "epoch",
    ) -> None:  # fmt: skip
        placeholder = "best.weights.h5" if save_weights_only else "best.keras"  # Keras looks at its ending
        super().__init__(placeholder, monitor, verbose, True, save_weights_only, mode, save_freq)
        self.filepath = None

    def on_train_begin(self, logs: Any = None) -> None:
        """Keras's own. Errors  ValueError without a filepath."""
        if self.filepath is None:
            raise ValueError("BestModelCheckpoint: set its `filepath` before model.fit()")
        super().on_train_begin(logs)


def _identity(variable: Any) -> int:
    inner = getattr(variable, "value", None)
    return id(inner) if isinstance(inner, tf.Variable) else id(variable)


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True
