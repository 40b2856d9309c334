"""What becomes of a job when its network is cut, whole or in part, for good or for a moment."""

import re
import sys
import time

import loops
import pytest
from remote_jobs import Running, python
from testbed import ETHERNET, INFINIBAND, Testbed


@pytest.fixture(scope="module")
def bed():
    with Testbed(hosts=3, networks=(ETHERNET, INFINIBAND), visible=[sys.prefix]) as bed:
        yield bed


@pytest.fixture
def mended(bed):
    yield
    for host in bed.hosts:
        host.restore_network()
        host.drop_nothing()


def cut(host):
    host.cut_network("ib0")


def reset(host):
    host.reset_connections("ib0")


def deafen(host):
    host.drop_incoming("ib0")


@pytest.mark.parametrize("fault", [cut, reset, deafen])
@pytest.mark.parametrize("hosts, victim", [("s1,s2", 0), ("s1,s2", 1), ("s1:2,s2:2,s3", 1)])
def test_a_data_network_that_fails_is_blamed_and_no_rank(bed, mended, fault, hosts, victim):
    """In a collective; the agents reach runjob over the other network as before."""
    options = ["-H", hosts, "--network-interface", "ib0", "--grace-period", "1"]
    with Running(bed, *options, *loops.command(loops.FOREVER), variables=loops.VARIABLES) as job:
        job.wait_for_lines(5 if "s3" in hosts else 2)
        fault(bed.hosts[victim])
        status, _, errors = job.finish()
        (message,) = [line for line in errors.splitlines() if line.startswith("runjob: error: ")]
        assert status == 125, errors
        assert re.match(r"runjob: error: s\d and s\d do not reach each other over ib0: ", message)
        assert f"s{victim + 1}" in message.partition(" do not")[0]
        job.wait_until_gone(*bed.hosts, bed.head)
