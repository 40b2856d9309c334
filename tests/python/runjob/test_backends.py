"""python/runjob/backends.py: what librunjob can use."""

import pytest

from runjob import backends


def test_gloo_is_there_and_the_absent_ones_say_why():
    known = backends.backends()
    assert backends.gloo_built() is backends.gloo_enabled() is True
    assert known["gloo"]["version"]
    for name, backend in known.items():
        assert backend["available"] or backend["reason"], name


def test_types_are_horovods():
    assert isinstance(backends.nccl_built(), int)
    for function in (
        backends.mpi_built,
        backends.mpi_enabled,
        backends.cuda_built,
        backends.rocm_built,
        backends.ddl_built,
        backends.ccl_built,
        backends.mpi_threads_supported,
    ):
        assert isinstance(function(), bool), function


@pytest.mark.parametrize(
    "available, nccl, cuda", [(("nccl", "cuda"), 22809, True), (("nccl", "another driver"), 22809, False), ((), 0, False)]
)
def test_cuda_is_built_where_its_driver_is_the_one_that_nccl_uses(monkeypatch, available, nccl, cuda):
    known = {name: {"available": name in available, "version_code": 22809} for name in ("nccl", "cuda", "another driver")}
    monkeypatch.setattr(backends, "backends", lambda: known)
    assert (backends.nccl_built(), backends.cuda_built()) == (nccl, cuda)
