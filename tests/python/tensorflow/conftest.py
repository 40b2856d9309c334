"""TensorFlow is not beside PyTorch in the environment of the other tests: packaging/tensorflow.sh makes one for each version of it, and
runs these with its Python."""

import importlib.util
import pathlib

import pytest

import ranks
import tensorflow_cases

FOLDER = pathlib.Path(__file__).parent


def pytest_collection_modifyitems(items):
    found = importlib.util.find_spec("tensorflow")
    if found is None or found.origin is None:  # the second: this folder
        for item in (each for each in items if FOLDER in each.path.parents):  # pytest gives those of all folders
            item.add_marker(pytest.mark.skip(reason="no TensorFlow here; packaging/tensorflow.sh runs these with several versions"))


@pytest.fixture(scope="session")
def outcomes(tmp_path_factory):
    """What every case returned, by rank."""
    return ranks.start(tmp_path_factory.mktemp("cases") / "job", tensorflow_cases.run_all, 2).results
