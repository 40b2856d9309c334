"""python/runjob/numpy/arrays.py: what is handed to the library, and what is refused."""

import re

import ml_dtypes
import numpy
import pytest

from runjob.dtypes import NUMBERS
from runjob.numpy.arrays import DTYPES, EXTENSIONS, NumpyArrays, number_of

arrays = NumpyArrays()


class _Own(numpy.ndarray):
    """As libraries derive them."""


def test_every_dtype_of_the_library_is_one_of_numpy():
    for name in EXTENSIONS:
        assert number_of(numpy.dtype(getattr(ml_dtypes, name)), "allreduce") == NUMBERS[name]
    assert {dtype.name: number for dtype, number in DTYPES.items()} == NUMBERS


@pytest.mark.parametrize("name", ["longlong", "ulonglong", "intc", "complex64", "datetime64[s]", "U3", "object", "uint32"])
def test_other_names_of_a_dtype_are_it_and_other_dtypes_are_refused(name):
    dtype = numpy.dtype(name)
    if name in ("longlong", "intc"):
        assert number_of(dtype, "allreduce") == number_of(numpy.dtype(f"int{8 * dtype.itemsize}"), "allreduce")
    else:
        with pytest.raises(ValueError, match=re.escape(f"allreduce does not take {dtype}")):
            number_of(dtype, "allreduce")


def test_an_array_in_one_piece_is_handed_over_as_it_is():
    array = numpy.arange(6.0).reshape(2, 3)
    assert arrays.dense(array, "allreduce") is array
    assert arrays.address(array) == array.ctypes.data
    assert (arrays.nbytes(array), arrays.shape(array)) == (48, (2, 3))


def test_others_are_copied():
    array = numpy.arange(6.0).reshape(2, 3).T
    dense = arrays.dense(array, "allreduce")
    assert dense.flags.c_contiguous and not numpy.shares_memory(dense, array) and (dense == array).all()


@pytest.mark.parametrize("value, shape", [(3.5, ()), (numpy.float32(2), ()), ([1, 2], (2,)), (numpy.ones(1).view(_Own), (1,))])
def test_what_numpy_takes_for_an_array_is_one(value, shape):
    dense = arrays.dense(value, "allreduce")
    assert type(dense) is numpy.ndarray and dense.shape == shape


@pytest.mark.parametrize(
    "value, text",
    [
        (None, "allreduce does not take object"),
        ("abc", "allreduce does not take <U3"),
        ([[1], [1, 2]], "allreduce takes an array, and list makes none"),
        (numpy.ma.array([1.0], mask=[True]), "would lose its mask; use array.filled"),
        (numpy.ones(2, dtype=">f4"), r"bytes are in another order.*array.astype\(array.dtype.newbyteorder\('='\)\)"),
    ],
)
def test_what_is_no_array_is_refused(value, text):
    with pytest.raises(ValueError, match=text):
        arrays.dense(value, "allreduce")


def _read_only():
    array = numpy.ones(2)
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    "value, text",
    [
        ([1.0], "takes a numpy.ndarray, not list"),
        (numpy.float32(1), "takes a numpy.ndarray, not float32"),
        (numpy.ones((2, 3)).T, "needs a C-contiguous array; use numpy.ascontiguousarray"),
        (numpy.ones(4)[::2], "needs a C-contiguous array"),
        (_read_only(), "the array is read-only"),
        (numpy.ones(2, dtype=complex), "does not take complex128"),
    ],
)
def test_what_cannot_be_changed_in_place_is_refused(value, text):
    with pytest.raises(ValueError, match=text):
        arrays.in_place(value, "allreduce_")
