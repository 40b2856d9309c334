"""Elastic training with Keras comes with a later version."""

from typing import TYPE_CHECKING

from .... import later

LATER = ("CommitStateCallback", "KerasState", "UpdateBatchStateCallback", "UpdateEpochStateCallback", "run")

if not TYPE_CHECKING:  # with it, type checkers would take every name for one
    __getattr__ = later.getattr_for(__name__, LATER)
