"""python/runjob/common.py: the names that the modules of all frameworks have."""

import pytest

import runjob.numpy
import runjob.torch
from runjob import common


@pytest.mark.parametrize("module", [runjob.numpy, runjob.torch])
def test_every_module_has_them(module):
    assert len(set(module.__all__)) == len(module.__all__)
    for name in module.__all__:
        assert hasattr(module, name)
    for name in common.__all__:
        assert getattr(module, name) is getattr(common, name)


def test_numpys_functions_are_those_of_pytorch():
    """But for what only training and GPUs need."""
    only_torch = {
        "DistributedOptimizer", "SyncBatchNorm", "assert_same", "broadcast_optimizer_state", "broadcast_parameters", "check",
        "clip_grad_norm_", "elastic", "sparse_allreduce_async",
    }  # fmt: skip
    assert set(runjob.torch.__all__) - set(runjob.numpy.__all__) == only_torch
    assert set(runjob.numpy.__all__) <= set(runjob.torch.__all__)
