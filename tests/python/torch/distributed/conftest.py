import pytest

import entry_points


@pytest.fixture(scope="session")
def installed(tmp_path_factory):
    """A folder for PYTHONPATH in which PyTorch finds the entry points of the package."""
    return entry_points.install(tmp_path_factory.mktemp("packages") / "installed")
