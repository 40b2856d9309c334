"""python/runjob/torch/__init__.py: the names of horovod.torch."""

import pytest

import runjob.torch as hvd


def test_all_names_exist():
    for name in hvd.__all__:
        assert hasattr(hvd, name)


def test_a_typing_error_is_pythons_own():
    with pytest.raises(AttributeError, match="module 'runjob.torch' has no attribute 'all_reduce'"):
        hvd.all_reduce
