"""A rank of an elastic job that trains until the job has had the sizes in its argument, one after the other."""

import os
import sys
import time

import numpy as np

import runjob.elastic
import runjob.numpy as rj

wanted = [int(size) for size in sys.argv[1].split(",")]
rj.init()
state = runjob.elastic.ObjectState(step=0, sizes=[], after=0)


@runjob.elastic.run
def train(state):
    while state.after < 3:
        ranks = rj.allreduce(np.ones(4), op=rj.Sum, name="ones")
        assert ranks.tolist() == [rj.size()] * 4
        time.sleep(0.01)
        state.step += 1
        if not state.sizes or state.sizes[-1] != rj.size():
            state.sizes.append(rj.size())
            if rj.rank() == 0:
                print(f"size {rj.size()}", flush=True)
        if state.sizes == wanted:
            state.after += 1
        state.commit()


train(state)
print(f"process {os.environ['RUNJOB_PROCESS_NUMBER']} on {os.environ['RUNJOB_HOSTNAME']}: rank {rj.rank()} of {rj.size()}, {state.sizes}", flush=True)
