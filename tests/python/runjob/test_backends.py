"""python/runjob/backends.py: what librunjob can use."""

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
