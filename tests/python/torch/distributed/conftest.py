import installed_ranks
import pytest


@pytest.fixture(scope="session")
def installed(tmp_path_factory):
    """A folder for PYTHONPATH in which PyTorch finds the entry points of the package."""
    return installed_ranks.install(tmp_path_factory.mktemp("packages") / "installed")
