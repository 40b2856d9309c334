"""Ranks that run collectives until the test does something to them. Small, with NumPy."""

import sys

import jobs

VARIABLES = {"PYTHONPATH": str(jobs.ROOT / "python"), "OMP_NUM_THREADS": "1"}

BEGINNING = """
import os, sys, time
import numpy
import runjob.numpy as hvd
hvd.init()
rank = hvd.rank()
"""

FOREVER = BEGINNING + """
step = 0
while True:
    hvd.allreduce(numpy.full(1000, float(step)))
    step += 1
    if step == 3:
        print("ready", flush=True)
"""

# The last operation: rank 1 waits in it. Rank 0 begins it when a file is there on its host.
ONE_MORE = BEGINNING + """
for step in range(5):
    hvd.allreduce(numpy.ones(1), name="step")
if rank == 0:
    time.sleep(0.3)  # rank 1 has sent its message
print("ready", flush=True)
while rank == 0 and not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
hvd.allreduce(numpy.ones(1), name="step")
hvd.shutdown()
print("done", flush=True)
"""

# Goes on until a file is there on rank 0's host, and then ends well everywhere.
UNTIL_FILE = BEGINNING + """
step = 0
while True:
    wanted = hvd.allreduce(numpy.array([float(rank == 0 and os.path.exists(sys.argv[1]))]), op=hvd.Sum)
    step += 1
    if step == 3:
        print("ready", flush=True)
    if wanted[0]:
        break
hvd.shutdown()
print("done", flush=True)
"""


def command(code, *arguments):
    return [sys.executable, "-u", "-c", code, *map(str, arguments)]


def local(*options):
    """The options of a job on this host; its environment goes beside it."""
    return ["--grace-period", "1", *options]
