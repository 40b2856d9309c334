"""TensorFlow's variables as arrays of a state."""

from __future__ import annotations

from typing import Any

import numpy
import tensorflow as tf

from ...elastic.array_kinds import ArrayKind, Form
from ...exceptions import MismatchError


class Variables(ArrayKind):
    """A tf.Variable with a known shape. Copies are NumPy's arrays, in the memory of this host."""

    name = "tensorflow"

    def takes(self, value: Any) -> bool:
        return isinstance(value, tf.Variable) and value.dtype != tf.string and value.shape.is_fully_defined()

    def form(self, value: Any) -> Form:
        return Form(self.name, tuple(value.shape), value.dtype.name, value.dtype.size * value.shape.num_elements())

    def dtype_name(self, dtype: Any) -> str:
        return str(dtype)

    def dtype_named(self, name: str) -> Any:
        return str(tf.as_dtype(name).name)

    def copy_in(self, form: Form, memory: memoryview) -> Any:
        return numpy.ndarray(form.shape, tf.as_dtype(form.dtype).as_numpy_dtype, memory if form.nbytes else None)

    def save(self, copy: Any, value: Any) -> None:
        if isinstance(value, tf.Variable):
            value = value.value()
            value = numpy.asarray(value) if value.shape.rank else value.numpy()  # numpy() copies, and asarray() takes no scalars
        copy[...] = value

    def restore(self, value: Any, copy: Any) -> Any:
        value.assign(copy)
        return value

    def new(self, copy: Any) -> Any:
        raise MismatchError(
            f"a commit has a variable of shape {copy.shape}, which the model of this process has not; make and build the same model on "
            "all ranks before elastic.run()"
        )
