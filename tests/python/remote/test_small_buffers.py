"""Collectives whose data never fit the sockets' buffers, among ranks that are stopped at random."""

import contextlib
import random
import signal
import sys
import time

from remote_jobs import ROOT, Running
from testbed import Testbed

VARIABLES = {"PYTHONPATH": str(ROOT / "python"), "OMP_NUM_THREADS": "1", "RUNJOB_STALL_CHECK_DISABLE": "1"}

# Waits in shared memory for ranks that wait for bytes, and the other way round: each rank is a leader's neighbour, and a
# member of a column between the hosts.
RANK = """
import random, sys
import numpy
import runjob.numpy as hvd

hvd.init()
rank, size = hvd.rank(), hvd.size()
choice = random.Random(5)
print("ready", flush=True)
for step in range(int(sys.argv[1])):
    count = choice.choice([1, 1000, 20_000, 100_000]) * size
    kind = choice.choice(["allreduce", "allgather", "broadcast", "alltoall", "reducescatter"])
    mine = numpy.arange(count, dtype=numpy.float64) + rank
    total = size * numpy.arange(count, dtype=numpy.float64) + size * (size - 1) / 2
    part = slice(rank * (count // size), (rank + 1) * (count // size))
    if kind == "allreduce":
        assert numpy.array_equal(hvd.allreduce(mine, op=hvd.Sum), total)
    elif kind == "allgather":
        parts = hvd.allgather(mine[: count // size]).reshape(size, -1)
        assert numpy.array_equal(parts, numpy.arange(count // size) + numpy.arange(size)[:, None])
    elif kind == "broadcast":
        root = choice.randrange(size)
        assert numpy.array_equal(hvd.broadcast(mine, root), numpy.arange(count) + root)
    elif kind == "alltoall":
        received = hvd.alltoall(mine)
        received = numpy.asarray(received[0] if isinstance(received, tuple) else received).reshape(size, -1)
        assert numpy.array_equal(received, numpy.arange(count)[part] + numpy.arange(size)[:, None])
    else:
        assert numpy.array_equal(hvd.reducescatter(mine, op=hvd.Sum), total[part])
hvd.shutdown()
"""


def test_nothing_locks_up_whichever_rank_stands_still():
    stops = random.Random(7)
    with Testbed(hosts=4, visible=[sys.prefix]) as bed:
        for host in bed.hosts:
            host.limit_socket_buffers()
        hosts = ",".join(f"{host.name}:4" for host in bed.hosts)
        with Running(bed, "-H", hosts, sys.executable, "-c", RANK, "40", variables=VARIABLES) as job:
            assert all(line.endswith("ready\n") for line in job.wait_for_lines(16))
            while job.process.poll() is None:
                ranks = job.named(stops.choice(bed.hosts), "python")
                stopped = stops.sample(ranks, min(2, len(ranks)))  # there are none when the job has just ended
                for number in (signal.SIGSTOP, signal.SIGCONT):
                    for rank in stopped:
                        with contextlib.suppress(ProcessLookupError):  # the job has just ended
                            rank.kill(number)
                    time.sleep(stops.uniform(0, 0.2))
            status, _, errors = job.finish()
    assert (status, errors) == (0, "")
