import os

import pytest

import jobs


def pytest_configure(config):
    if not os.access(jobs.RUNJOB, os.X_OK):
        pytest.exit(f"{jobs.RUNJOB} is not there: build it first, or set RUNJOB_BIN", returncode=2)
