"""The states of training with TensorFlow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from ... import keras_elastic
from ...elastic import ObjectState
from ...elastic.array_kinds import add_kind
from ..functions import assignable
from .variables import Variables

add_kind(Variables())


class TensorFlowKerasState(keras_elastic.ModelState):
    """A keras_elastic.ModelState whose commits are copies of TensorFlow's variables.

    backend  has no effect.
    """

    def __init__(self, model: Any, optimizer: Any = None, backend: Any = None, **kwargs: Any) -> None:
        super().__init__(model, optimizer, **kwargs)

    def arrays(self, variables: Sequence[Any]) -> list[Any]:
        """The variables of TensorFlow in the variables of Keras."""
        return [variable if isinstance(variable, tf.Variable) else variable.value for variable in assignable(variables)]

    def are_same(self, one: Any, other: Any) -> bool:
        """True if both are one object."""
        return one is other


class TensorFlowState(ObjectState):
    """Variables and plain objects: each keyword becomes an attribute.

    variables  by default all variables of a graph of TensorFlow 1, for which the session is needed.
    session    a session of TensorFlow 1.
    """

    def __init__(self, variables: Iterable[Any] | None = None, session: Any = None, **kwargs: Any) -> None:
        self.session = session
        self.variables = list(tf.compat.v1.global_variables() if variables is None else variables)
        super().__init__(**kwargs)

    def _values(self) -> dict[str, Any]:
        values = self.variables if self.session is None else self.session.run(self.variables)
        return {"variables": list(values), **super()._values()}

    def _set_values(self, values: Mapping[str, Any]) -> None:
        if self.session is not None:
            for variable, value in zip(self.variables, values["variables"]):
                variable.load(value, self.session)
        super()._set_values({name: value for name, value in values.items() if name != "variables"})
