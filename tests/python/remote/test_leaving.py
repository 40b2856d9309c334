"""What the ranks of other hosts learn of a rank that leaves."""

import sys
import uuid

import numpy  # noqa: F401  (the ranks need it)
import pytest
from remote_jobs import ROOT, Running
from testbed import Testbed

VARIABLES = {"PYTHONPATH": str(ROOT / "python"), "OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="module")
def bed():
    with Testbed(hosts=2, visible=[sys.prefix]) as bed:
        yield bed


# Rank 2 is the leader of the second host. It computes until rank 0 has its error, for which it is not needed.
BUSY_LEADER = """
import os, sys, time
import numpy as np
import runjob.numpy as hvd

hvd.init()
value, told = np.ones(8, np.float32), sys.argv[1]
for _ in range(3):
    hvd.allreduce(value, name="x")
if hvd.rank() == 3:
    hvd.shutdown()
elif hvd.rank() == 2:
    until = time.monotonic() + 60
    while not os.path.exists(told) and time.monotonic() < until:
        time.sleep(0.01)
    print("told" if os.path.exists(told) else "not told", flush=True)
else:
    try:
        hvd.allreduce(value, name="x")
    except Exception as error:
        print(f"{hvd.rank()}: {error}", flush=True)
"""


def test_a_rank_that_leaves_is_known_on_other_hosts_although_the_leader_of_its_host_is_busy(bed):
    told = ROOT / "build" / f"told.{uuid.uuid4()}"  # where the hosts see it
    try:
        with Running(bed, "-H", "s1:2,s2:2", sys.executable, "-c", BUSY_LEADER, told, variables=VARIABLES) as job:
            lines = sorted(job.wait_for_lines(2))
            told.touch()
            status, output, errors = job.finish()
    finally:
        told.unlink(missing_ok=True)
    for rank, line in enumerate(lines):
        assert line.startswith(f"[{rank}]<stdout>:{rank}: rank 3 on s2 called shutdown()"), lines
    assert "[2]<stdout>:told" in output and status == 0, output + errors
