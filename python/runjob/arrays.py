"""The interface by which the operations use a framework's arrays. The module for a framework has one object of a class
derived from Arrays.
"""

from __future__ import annotations

import abc
import functools
from collections.abc import Sequence
from ctypes import Array as CArray
from ctypes import c_int64
from typing import Any, Generic, TypeVar

#: A framework's class of arrays.
Array = TypeVar("Array")
#: The values that its operations take as an array, where they need not work in place.
Given = TypeVar("Given")


class Arrays(abc.ABC, Generic[Array]):
    """`no_room` is the exception that empty() raises when there is too little memory."""

    no_room: tuple[type[Exception], ...] = (MemoryError,)

    @abc.abstractmethod
    def dense(self, array: Any, operation: str) -> Array:
        """The values of `array` in one piece, row-major: its own memory where it has that form, else a copy.

        Errors  ValueError for a value that is not an array, or has a dtype that collectives do not take. The text names
        `operation`.
        """

    @abc.abstractmethod
    def in_place(self, array: Any, operation: str) -> Array:
        """`array` itself. Errors  as dense(), and ValueError for memory that the library cannot use without a copy."""

    @abc.abstractmethod
    def copy(self, array: Any, operation: str) -> Array:
        """`array`'s values in one new piece. Errors  as dense()."""

    @abc.abstractmethod
    def empty(self, shape: Sequence[int], like: Array) -> Array:
        """A new dense array with the dtype of `like` and undefined values. Errors  no_room."""

    @abc.abstractmethod
    def empty_like(self, array: Array) -> Array:
        """A new dense array, as from empty(), with the shape and dtype of `array`."""

    @abc.abstractmethod
    def cut(self, array: Array, shape: Sequence[int]) -> Array:
        """An array made by empty(), cut to `shape`, which has as many rows or fewer. The result is not a view of it."""

    @abc.abstractmethod
    def splits(self, rows: list[int]) -> Array:
        """`rows` as an array of int32."""

    @abc.abstractmethod
    def address(self, array: Array) -> int:
        """The address of the first element of a dense array."""

    @abc.abstractmethod
    def nbytes(self, array: Array) -> int:
        """The number of bytes of a dense array."""

    @abc.abstractmethod
    def shape(self, array: Array) -> tuple[int, ...]:
        """The array's extents."""

    @abc.abstractmethod
    def form(self, array: Array) -> tuple[CArray[c_int64], int, int]:
        """The array's extents as from c_array(), their number, and the array's runjob_dtype of runjob.h."""

    @abc.abstractmethod
    def is_array(self, value: object) -> bool:
        """True if `value` is one array, and not a list of arrays."""


@functools.lru_cache(maxsize=1024)
def c_array(extents: tuple[int, ...]) -> CArray[c_int64]:
    """Extents in the form that the C interface takes. They are read only: all arrays of one shape share them."""
    return (c_int64 * len(extents))(*extents)
