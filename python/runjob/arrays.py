"""What the operations ask of a framework's arrays. The module made for a framework has one object of a class derived from Arrays."""

from __future__ import annotations

import abc
import functools
from collections.abc import Sequence
from ctypes import Array as CArray
from ctypes import c_int64
from typing import Any, Generic, TypeVar

#: A framework's class of arrays.
Array = TypeVar("Array")
#: What its operations take for one, where they need not work in place.
Given = TypeVar("Given")


class Arrays(abc.ABC, Generic[Array]):
    """no_room  what empty() raises when there is too little memory."""

    no_room: tuple[type[Exception], ...] = (MemoryError,)

    @abc.abstractmethod
    def dense(self, array: Any, operation: str) -> Array:
        """`array`'s values in one piece, row-major: its own memory where that will do.

        Errors  ValueError for what is no array, or has a dtype that collectives do not take; the text names `operation`.
        """

    @abc.abstractmethod
    def in_place(self, array: Any, operation: str) -> Array:
        """`array` itself. Errors  as dense(), and ValueError for memory that cannot be handed over as it is."""

    @abc.abstractmethod
    def copy(self, array: Any, operation: str) -> Array:
        """`array`'s values in one new piece. Errors  as dense()."""

    @abc.abstractmethod
    def empty(self, shape: Sequence[int], like: Array) -> Array:
        """A new dense array with the dtype of `like`, of any values. Errors  no_room."""

    @abc.abstractmethod
    def empty_like(self, array: Array) -> Array:
        """empty() of a dense array's own shape."""

    @abc.abstractmethod
    def cut(self, array: Array, shape: Sequence[int]) -> Array:
        """An array made by empty() with fewer rows, or as many: not a view of it."""

    @abc.abstractmethod
    def splits(self, rows: list[int]) -> Array:
        """`rows` as an array of int32."""

    @abc.abstractmethod
    def address(self, array: Array) -> int:
        """Where a dense array begins."""

    @abc.abstractmethod
    def nbytes(self, array: Array) -> int:
        """How many bytes a dense array has."""

    @abc.abstractmethod
    def shape(self, array: Array) -> tuple[int, ...]:
        """Its extents."""

    @abc.abstractmethod
    def form(self, array: Array) -> tuple[CArray[c_int64], int, int]:
        """Its extents as c_array() gives them, how many there are, and its runjob_dtype of runjob.h."""

    @abc.abstractmethod
    def is_array(self, value: object) -> bool:
        """Whether `value` is one array, and not a list of them."""


@functools.lru_cache(maxsize=1024)
def c_array(extents: tuple[int, ...]) -> CArray[c_int64]:
    """Extents as the C interface takes them, for reading only: arrays of one shape share it."""
    return (c_int64 * len(extents))(*extents)
