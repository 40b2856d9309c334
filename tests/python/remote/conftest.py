import os

import pytest

import remote_jobs


def pytest_configure(config):
    if not os.access(remote_jobs.RUNJOB, os.X_OK):
        pytest.exit(f"{remote_jobs.RUNJOB} is not there: build it first, or set RUNJOB_BIN", returncode=2)
