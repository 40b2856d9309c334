"""python/runjob/arrays.py: what is the same for the arrays of all frameworks. Theirs is tested with each."""

import pytest

from runjob.arrays import Arrays, c_array


@pytest.mark.parametrize("extents", [(), (0,), (3,), (2, 0, 5)])
def test_extents_are_handed_over_as_they_are(extents):
    assert tuple(c_array(extents)) == extents


def test_arrays_of_one_shape_share_it():
    assert c_array((2, 3)) is c_array((2, 3))


def test_a_framework_has_to_say_everything():
    with pytest.raises(TypeError, match="abstract method"):
        Arrays()
