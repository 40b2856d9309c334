"""python/runjob/torch/__init__.py: the names of horovod.torch."""

import pytest

import runjob.torch as hvd


@pytest.mark.parametrize("name", hvd.LATER)
def test_names_of_later_versions_explain_themselves(name):
    assert not hasattr(hvd, name)
    with pytest.raises(AttributeError, match=f"runjob.torch.{name} is not in this version of runjob"):
        getattr(hvd, name)


def test_all_names_exist():
    for name in hvd.__all__:
        assert hasattr(hvd, name)


def test_a_typing_error_is_pythons_own():
    with pytest.raises(AttributeError, match="module 'runjob.torch' has no attribute 'all_reduce'"):
        hvd.all_reduce
