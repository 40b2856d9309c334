"""A network that is interrupted when ranks connect which have not talked before: their host's link address is not known."""

import sys
import uuid

import numpy  # noqa: F401  (the ranks need it)
import pytest
from remote_jobs import ROOT, Running
from testbed import Testbed, eventually

VARIABLES = {"PYTHONPATH": str(ROOT / "python"), "OMP_NUM_THREADS": "1"}

RANK = """
import os, sys, time
import numpy as np
import runjob.numpy as hvd

print("here", flush=True)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
hvd.init()
assert hvd.allreduce(np.ones(8, np.float32), op=hvd.Sum, name="x").sum() == 16
"""


@pytest.fixture
def bed():
    with Testbed(hosts=2, visible=[sys.prefix]) as bed:
        yield bed


def test_a_host_whose_link_address_is_asked_for_in_vain_for_a_moment_is_tried_again(bed):
    asked, asker = bed.hosts
    go = ROOT / "build" / f"go.{uuid.uuid4()}"  # where the hosts see it
    as_root = {"user": "root", "check": True}
    try:
        with Running(bed, "-H", "s1:1,s2:1", sys.executable, "-c", RANK, go, variables=VARIABLES) as job:
            job.wait_for_lines(2)
            asker.run(["nft", "add table arp lost; add chain arp lost in { type filter hook input priority 0; }; add rule arp lost in arp saddr ip "
                       f"{asked.address} drop"], **as_root)  # fmt: skip
            asker.run(["ip", "neigh", "flush", "to", asked.address], **as_root)
            go.touch()
            eventually(lambda: "FAILED" in asker.run(["ip", "neigh", "show", asked.address], **as_root).stdout, "the kernel has given up")
            asker.run(["nft", "delete table arp lost"], **as_root)
            status, output, errors = job.finish()
    finally:
        go.unlink(missing_ok=True)
    assert status == 0, output + errors
