import os

import pytest

import slurm_jobs
from testbed import ETHERNET, INFINIBAND
from testbed.slurm import Slurm


def pytest_configure(config):
    if not os.access(slurm_jobs.RUNJOB, os.X_OK):
        pytest.exit(f"{slurm_jobs.RUNJOB} is not there: build it first, or set RUNJOB_BIN", returncode=2)


@pytest.fixture(scope="session")
def slurm():
    """One cluster for all: each test leaves it as it was, with idle nodes."""
    with Slurm(nodes=3, cpus=4, gpus=2, networks=(ETHERNET, INFINIBAND)) as slurm:
        yield slurm
