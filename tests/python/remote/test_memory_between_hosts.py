"""The memory that collectives between hosts take beside the buffers of the user."""

import sys

import numpy  # noqa: F401  (the ranks need it)
import pytest
from remote_jobs import ROOT, run
from testbed import Testbed

VARIABLES = {"PYTHONPATH": str(ROOT / "python"), "OMP_NUM_THREADS": "1"}
LEADER_KIB, LINK_KIB = 4096, 256
OTHER_KIB = 1024  # Python's own, and the allocator's: what 64 blocking operations of few bytes vary by

# The memory of this process before and after collectives of 64 MiB in place, each page of whose buffers was written before.
RANK = """
import numpy
import runjob.numpy as hvd

def resident():
    return sum(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(("RssAnon", "RssShmem")))

hvd.init()
data = numpy.ones(16 << 20, numpy.float32)
few = numpy.ones(16, numpy.float32)
for _ in range(3):
    hvd.allreduce_(few, op=hvd.Sum, name="few")
    hvd.broadcast_(few, 0, name="few too")
before = resident()
for _ in range(3):
    hvd.allreduce_(data, op=hvd.Sum, name="x")
    hvd.broadcast_(data, 1, name="y")
print("grown by", resident() - before, flush=True)
hvd.shutdown()
"""


@pytest.mark.parametrize("hosts", [2, 4])
def test_a_leader_takes_little_memory_however_long_the_messages_are(hosts):
    with Testbed(hosts=hosts, visible=[sys.prefix]) as bed:
        names = ",".join(f"{host.name}:1" for host in bed.hosts)
        done = run(bed, "-H", names, sys.executable, "-c", RANK, variables=VARIABLES, timeout=200)
    assert (done.returncode, done.stderr) == (0, "")
    grown = [int(line.split()[-1]) for line in done.stdout.splitlines()]
    assert len(grown) == hosts
    assert max(grown) <= LEADER_KIB + (hosts - 1) * LINK_KIB + OTHER_KIB
