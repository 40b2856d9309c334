"""python/runjob/elastic/array_kinds.py: NumPy's arrays."""

import ml_dtypes
import numpy as np
import pytest

from runjob.elastic.array_kinds import kind_named, kind_of


@pytest.mark.parametrize("dtype", ["bool", "uint8", "float16", "complex128", "datetime64[s]", ml_dtypes.bfloat16, [("a", "i4"), ("b", "f8")]])
@pytest.mark.parametrize("shape", [(), (0, 2), (3, 2)])
def test_every_dtype_and_shape_is_copied(dtype, shape):
    value = np.zeros(shape, dtype)
    kind = kind_of(value)
    form = kind.form(value)
    memory = memoryview(bytearray(b"\1") * form.nbytes)
    copy = kind.copy_in(form, memory)
    assert (copy.shape, copy.dtype) == (value.shape, value.dtype)
    kind.save(copy, value)
    assert bytes(memory) == value.tobytes()
    assert kind.restore(value, copy) is value
    assert kind.dtype_named(kind.dtype_name(value.dtype)) == value.dtype
    value.flags.writeable = False
    assert kind.restore(value, copy) is not value


def test_transposed_arrays_are_copied():
    value = np.arange(6).reshape(2, 3).T
    kind = kind_of(value)
    copy = kind.copy_in(kind.form(value), memoryview(bytearray(value.nbytes)))
    kind.save(copy, value)
    assert (copy == value).all() and (kind.new(copy) == value).all()


def test_other_values_are_plain_objects():
    assert [kind_of(value) for value in (1, [1], np.float32(1), np.array([None]), np.ma.array([1]))] == [None] * 5


def test_a_kind_that_is_not_there_is_named():
    with pytest.raises(ValueError, match="arrays of nothing, which this process has not imported"):
        kind_named("nothing")
