"""The congestion control of the connections between ranks, on hosts whose default is BBR."""

import pathlib
import sys

import pytest
from remote_jobs import ROOT, Running
from testbed import Testbed

VARIABLES = {"PYTHONPATH": str(ROOT / "python"), "OMP_NUM_THREADS": "1"}
KNOWN = pathlib.Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text(encoding="utf-8").split()

RANK = """
import signal
import numpy
import runjob.numpy as hvd

hvd.init()
hvd.allreduce(numpy.ones(1 << 18))
print("ready", flush=True)
signal.pause()
"""


def connections(host, network):
    """The lines of ss about each connection within a network."""
    lines = host.run(["ss", "-Htin", "state", "established"]).stdout.replace("\n\t", "\t").splitlines()
    return [line for line in lines if line.split()[2].startswith(network)]


@pytest.mark.skipif("bbr" not in KNOWN, reason="this kernel has no BBR")
def test_ranks_with_a_short_round_trip_do_not_use_bbr():
    with Testbed(hosts=2, visible=[sys.prefix]) as bed:
        for host in bed.hosts:
            host.set_congestion_control("bbr")
        with Running(bed, "-H", "s1:1,s2:1", sys.executable, "-c", RANK, variables=VARIABLES) as job:
            assert all(line.endswith("ready\n") for line in job.wait_for_lines(2))
            for host in bed.hosts:
                found = connections(host, "10.")
                assert len(found) >= 3  # for data, rounds and control
                assert not [line for line in found if " bbr " in line]
                assert "bbr" in "".join(connections(host, "["))  # of SSH: the default is BBR
