"""A host whose link is so slow that one operation takes longer than the time limit for a rank that does nothing."""

import sys

import numpy  # noqa: F401  (the ranks need it)
import pytest
from remote_jobs import ROOT, run
from testbed import Testbed

# The last host's link carries 2.5 MB a second: 8 MiB take three times the limit.
RATE = "20mbit"
VARIABLES = {
    "PYTHONPATH": str(ROOT / "python"),
    "OMP_NUM_THREADS": "1",
    "RUNJOB_GLOO_TIMEOUT_SECONDS": "1",
    "RUNJOB_FUSION_THRESHOLD": "0",
}

# Rank 0 is done with "first" long before the last rank, and then waits for the others, which have announced "second".
RANK = """
import sys
import numpy as np
import runjob.numpy as hvd

hvd.init()
rank, last, elements = hvd.rank(), hvd.size() - 1, 2 << 20

def broadcast(name):
    return hvd.broadcast_async(np.full(elements, rank + 1.0, np.float32), 0, name=name)

def alltoall(name):
    splits = np.full(hvd.size(), 4)
    splits[last] = elements if rank == last - 1 else 4
    return hvd.alltoall_async(np.full(splits.sum(), rank + 1.0, np.float32), splits=splits, name=name)

operation = {"broadcast": broadcast, "alltoall": alltoall}[sys.argv[1]]
expected = {1.0} if sys.argv[1] == "broadcast" else {1.0, 2.0, 3.0}

def finish(handle):
    result = hvd.synchronize(handle)
    assert set(np.unique(result[0] if isinstance(result, tuple) else result)) == expected

if rank == 0:
    finish(operation("first"))
    finish(operation("second"))
else:
    second, first = operation("second"), operation("first")
    finish(first)
    finish(second)
print("right", flush=True)
hvd.shutdown()
"""


@pytest.fixture(scope="module")
def bed():
    with Testbed(hosts=3, visible=[sys.prefix]) as bed:
        bed.hosts[2].shape_network(RATE)
        yield bed


@pytest.mark.parametrize("operation", ["broadcast", "alltoall"])
def test_a_rank_that_still_moves_bytes_is_not_late(bed, operation):
    job = ["-H", "s1:1,s2:1,s3:1", sys.executable, "-c", RANK, operation]
    done = run(bed, *job, variables=VARIABLES, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("right") == 3
