"""python/runjob/dtypes.py: the numbers that the library gets."""

import ctypes

import pytest

from older_functions import library
from runjob import basics, dtypes


opened = library()


@pytest.fixture
def job():
    basics.init()
    yield
    basics.shutdown()


@pytest.mark.parametrize("number", sorted(dtypes.NUMBERS.values()))
def test_the_library_takes_each_number(job, number):
    assert broadcast_code(number) == 0


def test_the_library_has_no_other_dtype(job):
    assert broadcast_code(max(dtypes.NUMBERS.values()) + 1) == 1
    assert b"11 is not a dtype" in opened.runjob_error_message()


def broadcast_code(number):
    handle, shape = ctypes.c_int64(), (ctypes.c_int64 * 1)(0)
    return opened.runjob_broadcast(b"x", None, shape, 1, number, 0, 0, -1.0, ctypes.byref(handle))
