"""A rank of an elastic job with two ranks on each of two hosts, of which the processes with local rank 0 are killed in step 5.

Trains until the job has had the sizes in its argument, and prints the learning rate that its reset callbacks have set in each generation.
"""

import os
import signal
import sys
import time

import numpy as np

import runjob.elastic
import runjob.numpy as rj

wanted = [int(size) for size in sys.argv[1].split(",")]
number = int(os.environ["RUNJOB_PROCESS_NUMBER"])
if number == 0:  # it outlives its parent, and has the environment of it
    if os.fork() == 0:
        os.setsid()
        time.sleep(600)
        os._exit(0)
if number >= 4:  # a replacement: what process 0 has left on this host must be gone
    alive = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/environ", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if b"RUNJOB_PROCESS_NUMBER=0" in words and f"RUNJOB_JOB_ID={os.environ['RUNJOB_JOB_ID']}".encode() in words:
            alive.append(entry)
    print(f"left of process 0: {alive}", flush=True)
rj.init()
state = runjob.elastic.ObjectState(step=0, sizes=[], after=0)
local_rank = rj.local_rank()
rates = [(rj.size(), 0.5 * rj.size())]
state.register_reset_callbacks([lambda: rates.append((rj.size(), 0.5 * rj.size()))])


@runjob.elastic.run
def train(state):
    assert rj.local_rank() == local_rank, "a process keeps its local rank"
    while state.after < 3:
        if state.step == 5 and number in (0, 2):
            os.kill(os.getpid(), signal.SIGKILL)
        rj.allreduce(np.ones(4), op=rj.Sum, name="ones")
        time.sleep(0.01)
        state.step += 1
        if not state.sizes or state.sizes[-1] != rj.size():
            state.sizes.append(rj.size())
            print(f"size {rj.size()}: local rank {rj.local_rank()} of {rj.local_size()}", flush=True)
        if state.sizes[-1] == wanted[-1] and len(state.sizes) > 1:
            state.after += 1
        state.commit()


train(state)
print(f"process {number}: local rank {rj.local_rank()}, rates {rates}", flush=True)
