"""A NumPy array in the form that the C interface takes: pointer, shape, dtype."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import Array as CArray
from ctypes import c_int64
from typing import Any

import numpy
from numpy.typing import NDArray

from ..arrays import Arrays, c_array
from ..dtypes import NUMBERS

NDArrayAny = NDArray[Any]

#: The dtypes of the package ml_dtypes, which need not be installed. By name, the bytes of an element.
EXTENSIONS = {"bfloat16": 2}
#: The dtypes that NumPy has by itself. One of EXTENSIONS is added when it is first seen.
DTYPES: dict[numpy.dtype[Any], int] = {numpy.dtype(name): number for name, number in NUMBERS.items() if name not in EXTENSIONS}


def number_of(dtype: numpy.dtype[Any], operation: str) -> int:
    """The library's number of `dtype`. Errors  ValueError for a dtype that collectives do not take."""
    number = DTYPES.get(dtype)
    if number is not None:
        return number
    if EXTENSIONS.get(dtype.name) == dtype.itemsize and dtype.isnative:
        return DTYPES.setdefault(dtype, NUMBERS[dtype.name])
    if not dtype.isnative and dtype.newbyteorder("=") in DTYPES:
        raise ValueError(
            f"{operation} does not take {dtype.str}, whose bytes are in another order than this machine's; "
            "use array.astype(array.dtype.newbyteorder('='))"
        )
    raise ValueError(f"{operation} does not take {dtype}")


class NumpyArrays(Arrays[NDArrayAny]):
    """NumPy's arrays. Operations that do not work in place take any value that numpy.asarray() takes."""

    no_room = (MemoryError, ValueError)  # NumPy raises the second for more elements than an array can have

    def dense(self, array: Any, operation: str) -> NDArrayAny:
        return numpy.asarray(_array(array, operation), order="C")

    def in_place(self, array: Any, operation: str) -> NDArrayAny:
        if not isinstance(array, numpy.ndarray):
            raise ValueError(f"{operation} works in place and takes a numpy.ndarray, not {type(array).__name__}")
        _array(array, operation)
        if not array.flags.c_contiguous:
            raise ValueError(f"{operation} works in place and needs a C-contiguous array; use numpy.ascontiguousarray(array)")
        if not array.flags.writeable:
            raise ValueError(f"{operation} works in place, and the array is read-only; use array.copy()")
        return array

    def copy(self, array: Any, operation: str) -> NDArrayAny:
        return numpy.array(_array(array, operation), order="C")

    def empty(self, shape: Sequence[int], like: NDArrayAny) -> NDArrayAny:
        return numpy.empty(shape, dtype=like.dtype)

    def empty_like(self, array: NDArrayAny) -> NDArrayAny:
        return numpy.empty_like(array)

    def cut(self, array: NDArrayAny, shape: Sequence[int]) -> NDArrayAny:
        if array.shape != shape:
            array.resize(tuple(shape), refcheck=False)  # no other reference to the array exists, and this frees memory
        return array

    def splits(self, rows: list[int]) -> NDArrayAny:
        return numpy.array(rows, dtype=numpy.int32)

    def address(self, array: NDArrayAny) -> int:
        address: int = array.__array_interface__["data"][0]
        return address

    def nbytes(self, array: NDArrayAny) -> int:
        return array.nbytes

    def shape(self, array: NDArrayAny) -> tuple[int, ...]:
        return array.shape

    def form(self, array: NDArrayAny) -> tuple[CArray[c_int64], int, int]:
        shape = array.shape
        return c_array(shape), len(shape), DTYPES[array.dtype]

    def is_array(self, value: object) -> bool:
        return isinstance(value, numpy.ndarray)


def _array(value: Any, operation: str) -> NDArrayAny:
    """The value as an array. Errors  ValueError for a value that is not an array of a known dtype, and for a masked
    array, whose mask would be lost.
    """
    if type(value) is not numpy.ndarray:
        if isinstance(value, numpy.ma.MaskedArray):
            raise ValueError(f"{operation} of a masked array would lose its mask; use array.filled(...) or array.data")
        try:
            value = numpy.asarray(value)
        except ValueError as error:  # NumPy raises it for rows of different lengths
            raise ValueError(f"{operation} takes an array, and {type(value).__name__} makes none: {error}") from None
    number_of(value.dtype, operation)
    return value  # type: ignore[no-any-return]
