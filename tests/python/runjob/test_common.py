"""python/runjob/common.py: the names that the modules of all frameworks have."""

import pytest

import runjob.torch
from runjob import common


@pytest.mark.parametrize("module", [runjob.torch])
def test_every_module_has_them(module):
    assert len(set(module.__all__)) == len(module.__all__)
    for name in module.__all__:
        assert hasattr(module, name)
    for name in common.__all__:
        assert getattr(module, name) is getattr(common, name)
