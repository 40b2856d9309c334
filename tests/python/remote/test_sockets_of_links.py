"""The ranks' connections have other settings on hosts near to each other than on hosts far from each other."""

import pathlib
import re
import sys

import pytest
from remote_jobs import ROOT, Running
from testbed import Testbed, eventually

VARIABLES = {"PYTHONPATH": str(ROOT / "python"), "OMP_NUM_THREADS": "1"}
KNOWN = pathlib.Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text(encoding="utf-8").split()
without_bbr_skipped = pytest.mark.skipif("bbr" not in KNOWN, reason="the kernel has not loaded BBR: tcp_available_congestion_control")
ASKED_SEND_BUFFER = 256 << 10  # kSendBufferBytes of runtime/collectives/tcp/tcp_transport.cc

RANK = """
import signal
import numpy
import runjob.numpy as hvd

hvd.init()
hvd.broadcast(numpy.ones(1 << 20), root_rank=0)
hvd.allreduce(numpy.ones(1 << 18))
print("ready", flush=True)
signal.pause()
"""

BROADCASTS = """
import numpy
import runjob.numpy as hvd

hvd.init()
hvd.allreduce(numpy.ones(1 << 18))
print("ready", flush=True)
while True:
    hvd.broadcast(numpy.ones(1 << 21), root_rank=0)
"""


def connections(host, network):
    """The lines of ss about each connection within a network."""
    lines = host.run(["ss", "-Htinm", "state", "established"]).stdout.replace("\n\t", "\t").splitlines()
    return [line for line in lines if line.split()[2].startswith(network)]


def send_buffers(host):
    return [int(found) for line in connections(host, "10.") for found in re.findall(r"\btb(\d+)", line)]


def asked_send_buffer(host):
    """The size that the kernel grants: at most its limit, and doubled for its own records (socket(7), SO_SNDBUF)."""
    most = int(host.run(["sysctl", "-n", "net.core.wmem_max"], check=True).stdout)
    return 2 * min(ASKED_SEND_BUFFER, most)


def ready(job):
    return all(line.endswith("ready\n") for line in job.wait_for_lines(2))


def start(bed, program=RANK):
    return Running(bed, "-H", "s1:1,s2:1", sys.executable, "-c", program, variables=VARIABLES)


@without_bbr_skipped
def test_ranks_with_a_short_round_trip_do_not_use_bbr():
    with Testbed(hosts=2, visible=[sys.prefix]) as bed:
        for host in bed.hosts:
            host.set_congestion_control("bbr")
        with start(bed) as job:
            assert ready(job)
            for host in bed.hosts:
                found = connections(host, "10.")
                assert len(found) >= 3  # for data, rounds and control
                assert not [line for line in found if " bbr " in line]
                assert "bbr" in "".join(connections(host, "["))  # of SSH: the default is BBR


@without_bbr_skipped
def test_ranks_with_a_long_round_trip_use_bbr_where_it_is_the_default():
    with Testbed(hosts=2, visible=[sys.prefix]) as bed:
        for host in bed.hosts:
            host.set_congestion_control("bbr")
        bed.hosts[0].delay_network(0.001)
        with start(bed) as job:
            assert ready(job)
            for host in bed.hosts:
                found = connections(host, "10.")
                assert len(found) >= 3
                assert not [line for line in found if " bbr " not in line]


def test_send_buffers_are_limited_only_over_a_short_round_trip():
    with Testbed(hosts=2, visible=[sys.prefix]) as bed:
        asked = asked_send_buffer(bed.hosts[0])
        with start(bed) as job:
            assert ready(job)
            for host in bed.hosts:
                assert asked in send_buffers(host)
        bed.hosts[0].delay_network(0.001)
        with start(bed) as job:
            assert ready(job)
            for host in bed.hosts:
                assert asked not in send_buffers(host)


def test_the_send_buffer_of_a_broadcast_between_two_ranks_has_no_limit():
    with Testbed(hosts=2, visible=[sys.prefix]) as bed:
        root = bed.hosts[0]
        asked = asked_send_buffer(root)
        with start(bed, BROADCASTS) as job:
            assert ready(job)
            eventually(lambda: asked not in send_buffers(root), "no connection has the size that is asked for", 30)
        with start(bed) as job:  # its broadcast is over
            assert ready(job)
            assert asked in send_buffers(root)
