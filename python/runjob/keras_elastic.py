"""Elastic training with Keras, for all its backends: the state of a model, and callbacks that keep the position of the
training.

The callbacks are mixin classes in front of Keras's own class, which has `model`. A batch or an epoch is counted when it
has ended. Therefore a commit has the same numbers in whichever order the callbacks are given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from . import job
from .elastic import ObjectState
from .exceptions import MismatchError


class ModelState(ObjectState):
    """A model, its optimizer and plain objects: each keyword becomes an attribute.

    optimizer  by default the model's own. It is built, so that all ranks have the same variables.
    Errors     ValueError for a value that cannot be copied; in sync() MismatchError for a model that differs from rank
               0's.
    """

    def __init__(self, model: Any, optimizer: Any = None, **kwargs: Any) -> None:
        self.model = model
        self.optimizer = getattr(model, "optimizer", None) if optimizer is None else optimizer
        super().__init__(**kwargs)

    def arrays(self, variables: Sequence[Any]) -> list[Any]:
        """Variables of Keras as arrays of the backend that share their memory."""
        raise NotImplementedError

    def are_same(self, one: Any, other: Any) -> bool:
        """True if two arrays belong to the same variable."""
        raise NotImplementedError

    def _values(self) -> dict[str, Any]:
        values = {"model": self.arrays(self.model.weights), "optimizer": self.arrays(_variables_of(self.optimizer, self.model))}
        return {**values, **super()._values()}

    def _set_values(self, values: Mapping[str, Any]) -> None:
        live = ModelState._values(self)
        for name in ("model", "optimizer"):
            ours, theirs = live[name], values[name]
            if len(ours) != len(theirs) or not all(map(self.are_same, ours, theirs)):
                raise MismatchError(
                    f"the {name} of rank {job.rank()} has not the variables of rank 0's: it has {len(ours)}, and rank 0's has {len(theirs)}; "
                    "make and build the same model on all ranks before elastic.run()"
                )
        super()._set_values({name: value for name, value in values.items() if name not in ("model", "optimizer")})


def _variables_of(optimizer: Any, model: Any) -> list[Any]:
    """An optimizer's variables, and none without an optimizer. Builds the optimizer."""
    if optimizer is None:
        return []
    is_built = getattr(optimizer, "built", getattr(optimizer, "_built", False))  # Keras 2 has `_built`, once the optimizer is built
    if not is_built and model.weights and hasattr(optimizer, "build"):
        optimizer.build(model.trainable_variables)
    variables = optimizer.variables
    return list(variables() if callable(variables) else variables)


class CommitState:
    """Commits the state at the end of every `batches_per_commit` batches."""

    def __init__(self, state: Any, batches_per_commit: int = 1) -> None:
        super().__init__()
        self._state = state
        self.batches_per_commit = batches_per_commit
        self.batches_remaining = batches_per_commit

    def on_train_begin(self, logs: Any = None) -> None:
        """Begins to count batches."""
        self.batches_remaining = self.batches_per_commit

    def on_batch_end(self, batch: int, logs: Any = None) -> None:
        """Counts the batch, and commits when it is time. Errors  as for state.commit()."""
        if not all(counter.end_batch(batch) for counter in _counters_of(self._state).values()):
            return
        self.batches_remaining -= 1
        if self.batches_remaining == 0:
            self.batches_remaining = self.batches_per_commit
            self._state.commit()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Commits as well. Errors  as for state.commit()."""
        for counter in _counters_of(self._state).values():
            counter.end_epoch()
        self._state.commit()


class _Counter:
    """Keeps a number in a state. end_batch() and end_epoch() may be called twice for a batch or an epoch: first by
    CommitState, then by Keras.
    """

    def __init__(self, state: Any) -> None:
        super().__init__()
        self._state = state
        _counters_of(state)[type(self).__name__] = self

    def end_batch(self, batch: int) -> bool:
        """Returns whether the model has been trained on the batch."""
        return True

    def end_epoch(self) -> None:
        """Ends an epoch, also one without a batch left."""

    def on_batch_end(self, batch: int, logs: Any = None) -> None:
        """Counts the batch."""
        self.end_batch(batch)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Counts the epoch."""
        self.end_epoch()


def _counters_of(state: Any) -> dict[str, _Counter]:
    """The counters that were made for the state, the last one of each class."""
    counters: dict[str, _Counter] = state.__dict__.setdefault("_counters", {})
    return counters


class UpdateBatchState(_Counter):
    """Keeps in state.batch how many batches of the epoch have ended. If it is not 0 when fit() begins, training
    continues there: so many batches are taken from the data without training on them.
    """

    model: Any

    def __init__(self, state: Any) -> None:
        super().__init__(state)
        self._left_out = 0

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Skips the batches that have ended according to the state."""
        self._left_out = self._state.batch
        _train_again(self.model)
        if self._left_out:
            self.model.train_function = _LeftOut(self.model.train_function, self.model)

    def on_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Resumes training after the skipped batches."""
        if batch >= self._left_out:
            _train_again(self.model)

    def end_batch(self, batch: int) -> bool:
        """Counts a batch that has ended, or several batches of which it is the last."""
        if batch < self._left_out:
            return False
        self._state.batch = batch + 1
        return True

    def end_epoch(self) -> None:
        """Begins a new epoch."""
        self._state.batch = self._left_out = 0
        _train_again(self.model)


class _LeftOut:
    """Replaces a model's train_function for skipped batches, and only takes their data."""

    def __init__(self, train: Any, model: Any) -> None:
        self.train = train
        steps: Any = getattr(model, "steps_per_execution", None) or getattr(model, "_steps_per_execution", 1)
        self._steps = int(steps.numpy() if hasattr(steps, "numpy") else steps)

    def __call__(self, data: Any) -> dict[str, Any]:
        if hasattr(data, "__next__"):  # TensorFlow's trainer gives an iterator, PyTorch's the batches themselves
            for _ in range(self._steps):
                next(data)
        return {}


def _train_again(model: Any) -> None:
    if isinstance(model.train_function, _LeftOut):
        model.train_function = model.train_function.train


class UpdateEpochState(_Counter):
    """Keeps in state.epoch how many epochs have ended, with whichever number fit() has begun."""

    def __init__(self, state: Any) -> None:
        super().__init__(state)
        self._has_begun = False

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Remembers that an epoch has begun."""
        self._has_begun = True

    def end_epoch(self) -> None:
        """Counts the epoch."""
        self._state.epoch += int(self._has_begun)
        self._has_begun = False
