"""Kinds of arrays that a state copies into memory of its own. NumPy's kind is here, and a framework's kind is in the
module of its states.
"""

from __future__ import annotations

import ast
import sys
from typing import Any, NamedTuple


class Form(NamedTuple):
    """The properties of an array that are the same on all ranks. `kind` is the name of its ArrayKind."""

    kind: str
    shape: tuple[int, ...]
    dtype: Any
    nbytes: int


class ArrayKind:
    """Arrays of one framework, and copies of them in memory that the caller provides as a buffer.

    Attributes  name: the same on all ranks.
    """

    name = ""

    def takes(self, value: Any) -> bool:
        """True if `value` is an array of this kind. Values of no kind are plain objects."""
        raise NotImplementedError

    def form(self, value: Any) -> Form:
        """The Form of an array."""
        raise NotImplementedError

    def dtype_name(self, dtype: Any) -> str:
        """The dtype of a Form as text, for dtype_named(). All kinds use NumPy's names for common ones: "float32"."""
        raise NotImplementedError

    def dtype_named(self, name: str) -> Any:
        """The inverse of dtype_name(). Errors  TypeError, ValueError, AttributeError for a text that names no dtype."""
        raise NotImplementedError

    def copy_in(self, form: Form, memory: memoryview) -> Any:
        """A copy that lies in `memory`, of form.nbytes bytes, and has no values yet."""
        raise NotImplementedError

    def is_far(self, value: Any) -> bool:
        """True if the array does not lie in the memory of this host."""
        return False

    def copy_beside(self, value: Any) -> Any:
        """A copy without values of an array for which is_far() is true, in the memory in which the array lies."""
        raise NotImplementedError

    def save(self, copy: Any, value: Any) -> None:
        """Copies the values of an array, or of another copy, into a copy."""
        raise NotImplementedError

    def restore(self, value: Any, copy: Any) -> Any:
        """The array with the values of the copy. It is another array if `value` cannot be written."""
        raise NotImplementedError

    def new(self, copy: Any) -> Any:
        """A new array with the values of the copy. Errors  ValueError for a kind whose arrays only the program can make."""
        raise NotImplementedError


class NumpyArrays(ArrayKind):
    """numpy.ndarray itself, not its subclasses, without Python objects in it. This module does not import NumPy."""

    name = "numpy"

    def takes(self, value: Any) -> bool:
        numpy = sys.modules.get("numpy")
        return numpy is not None and type(value) is numpy.ndarray and not value.dtype.hasobject

    def form(self, value: Any) -> Form:
        return Form(self.name, value.shape, value.dtype, value.nbytes)

    def dtype_name(self, dtype: Any) -> str:
        import numpy

        try:
            is_enough = numpy.dtype(dtype.name) == dtype
        except TypeError:
            is_enough = False
        # Text, structs and foreign byte orders have the form that NumPy's own files use.
        return str(dtype.name) if is_enough else repr(numpy.lib.format.dtype_to_descr(dtype))

    def dtype_named(self, name: str) -> Any:
        import numpy

        is_description = name[:1] in ("'", "[", "(")
        return numpy.lib.format.descr_to_dtype(ast.literal_eval(name)) if is_description else numpy.dtype(name)

    def copy_in(self, form: Form, memory: memoryview) -> Any:
        import numpy

        return numpy.ndarray(form.shape, form.dtype, memory if form.nbytes else None)

    def save(self, copy: Any, value: Any) -> None:
        copy[...] = value

    def restore(self, value: Any, copy: Any) -> Any:
        if not value.flags.writeable:
            return self.new(copy)
        value[...] = copy
        return value

    def new(self, copy: Any) -> Any:
        return copy.copy()


_kinds: dict[str, ArrayKind] = {}
_NEVER_ARRAYS = frozenset((bool, int, float, str, bytes, type(None)))


def add_kind(kind: ArrayKind) -> None:
    """Registers a kind. States copy arrays of this kind from now on."""
    _kinds[kind.name] = kind


def kind_of(value: Any) -> ArrayKind | None:
    """The kind of an array; None for a plain object."""
    if type(value) in _NEVER_ARRAYS:
        return None
    for kind in _kinds.values():
        if kind.takes(value):
            return kind
    return None


class UnknownKindError(ValueError):
    """Rank 0, or a commit, has arrays of a kind that this process does not have."""


def kind_named(name: str) -> ArrayKind:
    """The kind with that name. Errors  UnknownKindError."""
    if name not in _kinds:
        raise UnknownKindError(f"rank 0's state has arrays of {name}, which this process has not imported")
    return _kinds[name]


add_kind(NumpyArrays())
