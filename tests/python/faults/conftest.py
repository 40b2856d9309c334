import os
import pathlib
import sys

import pytest

for folder in ("launcher", "remote"):
    sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / folder))

import jobs  # noqa: E402


def pytest_configure(config):
    if not os.access(jobs.RUNJOB, os.X_OK):
        pytest.exit(f"{jobs.RUNJOB} is not there: build it first, or set RUNJOB_BIN", returncode=2)
