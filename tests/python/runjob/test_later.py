"""python/runjob/later.py: names that this version does not have."""

import pytest

from runjob import later

lookup = later.getattr_for("some.module", ["alltoall"])


def test_a_name_of_horovod_says_that_it_comes_later():
    with pytest.raises(AttributeError, match="some.module.alltoall is not in this version of runjob"):
        lookup("alltoall")


def test_another_name_fails_as_in_every_module():
    with pytest.raises(AttributeError, match="module 'some.module' has no attribute 'altoall'"):
        lookup("altoall")
