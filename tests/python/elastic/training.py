"""A rank of an elastic job: counts steps, and sums them over the ranks."""

import os
import signal
import sys

import numpy as np

import runjob.elastic
import runjob.numpy as rj

rj.init()
state = runjob.elastic.ObjectState(step=0, total=0)
sizes = []
state.register_reset_callbacks([lambda: sizes.append(rj.size())])


@runjob.elastic.run
def train(state):
    while state.step < 20:
        if state.step == 7 and os.environ["RUNJOB_PROCESS_NUMBER"] == sys.argv[1]:
            os.kill(os.getpid(), signal.SIGKILL)
        one = rj.allreduce(np.ones(1), op=rj.Sum, name="one")
        state.total += int(one[0])
        state.step += 1
        state.commit()


train(state)
print(rj.rank(), rj.size(), state.step, state.total, sizes, flush=True)
