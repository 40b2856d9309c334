"""The data of a short operation travel in its round, or on their own: the network that the job has measured decides."""

import json
import sys

import numpy  # noqa: F401  (the ranks need it)
from remote_jobs import ROOT, run
from testbed import Testbed

VARIABLES = {"PYTHONPATH": str(ROOT / "python"), "OMP_NUM_THREADS": "1"}
TRACE = "/tmp/trace.json"

RANK = """
import numpy
import runjob.numpy as hvd

hvd.init()
for count in (16, 2048):  # 64 bytes and 8 KiB
    for step in range(20):
        total = hvd.allreduce(numpy.full(count, step, numpy.float32), name=str(count), op=hvd.Sum)
        assert numpy.array_equal(total, numpy.full(count, hvd.size() * step)), (count, step)
hvd.shutdown()
"""


def tensors_in_rounds(bed):
    """Two ranks on each of two hosts: the names of the tensors whose data were part of a round."""
    done = run(bed, "-H", "s1:2,s2:2", "--timeline-filename", TRACE, sys.executable, "-c", RANK, variables=VARIABLES)
    assert (done.returncode, done.stderr) == (0, "")
    trace = json.loads(bed.hosts[0].run(["cat", TRACE], check=True).stdout)
    names = {event["pid"]: event["args"].get("name") for event in trace if event.get("name") == "process_name"}
    return {names[event["pid"]] for event in trace if event.get("args", {}).get("algorithm") == "round of negotiation"}


def test_data_that_would_hold_up_a_round_over_a_slow_network_travel_on_their_own():
    with Testbed(hosts=2, visible=[sys.prefix]) as bed:
        assert tensors_in_rounds(bed) == {"allreduce.16", "allreduce.2048"}
        for host in bed.hosts:
            host.shape_network("100mbit")
        assert tensors_in_rounds(bed) == {"allreduce.16"}
