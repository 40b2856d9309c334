"""--encrypt-data: what somebody on the network between two hosts sees of the ranks' data, and what both ranks tell when only one
of them encrypts."""

import sys

import numpy  # noqa: F401  (the ranks need it)
import pytest
from remote_jobs import ROOT, run
from sniffer import SECRET, sniffing
from testbed import Testbed

VARIABLES = {"PYTHONPATH": str(ROOT / "python"), "OMP_NUM_THREADS": "1"}
RANK = f"""
import os, sys
if len(sys.argv) > 1: os.environ["RUNJOB_ENCRYPT_DATA"] = str(int(os.environ["RUNJOB_RANK"]) % 2)
import numpy as np, runjob.numpy as rj
rj.init()
data = np.frombuffer({SECRET!r} * 20000, dtype=np.uint8).copy()
for root in range(rj.size()):
    out = rj.broadcast(data, root, name="secret")
    assert (out == data).all()
assert rj.allreduce(np.ones(100000, np.float32), op=rj.Sum)[0] == rj.size()
rj.shutdown()
print("done")
"""

@pytest.fixture(scope="module")
def bed():
    with Testbed(hosts=2, visible=[sys.prefix]) as bed:
        yield bed


def sniffed(bed, *options):
    with sniffing(bed.hosts[1]) as found:
        done = run(bed, *options, "-H", "s1:2,s2:2", sys.executable, "-c", RANK, variables=VARIABLES)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("done") == 4
    return found.packets, found.bytes


def test_a_sniffer_reads_the_data_only_without_encryption(bed):
    seen, total = sniffed(bed)
    assert seen > 0 and total > len(SECRET) * 20000
    seen, total = sniffed(bed, "--encrypt-data")
    assert seen == 0 and total > len(SECRET) * 20000


def test_ranks_that_differ_name_each_other_and_the_remedy(bed):
    done = run(bed, "-H", "s1:1,s2:1", sys.executable, "-c", RANK, "differ", variables=VARIABLES)
    assert done.returncode != 0
    assert "encrypt" in done.stderr and "10.77.0." in done.stderr and "give --encrypt-data to runjob" in done.stderr
