"""A rank of an elastic job that trains until the job has all of its ranks again, and 40 steps are done.

growing.py NUMBER [SLOW]: process NUMBER kills itself; process SLOW leaves a generation half a second after the others.
"""

import os
import signal
import sys
import time

import numpy as np

import runjob.elastic
import runjob.numpy as rj
from runjob.exceptions import HostsUpdatedInterrupt

rj.init()


class State(runjob.elastic.ObjectState):
    def check_host_updates(self):
        try:
            super().check_host_updates()
        except HostsUpdatedInterrupt:
            if sys.argv[2:] == [os.environ["RUNJOB_PROCESS_NUMBER"]]:
                time.sleep(0.5)
            raise


state = State(step=0, grown=False)


def note_size():
    # Also with a newcomer whose place is the one of its init(): callbacks run on all ranks.
    assert rj.allreduce(np.ones(1), op=rj.Sum, name="of a callback")[0] == rj.size()
    state.grown = state.grown or rj.size() == 3


state.register_reset_callbacks([note_size])


@runjob.elastic.run
def train(state):
    while state.step < 40:
        if state.step == 5 and os.environ["RUNJOB_PROCESS_NUMBER"] == sys.argv[1]:
            os.kill(os.getpid(), signal.SIGKILL)
        rj.allreduce(np.ones(4), op=rj.Sum, name="ones")
        time.sleep(0.01)
        if state.step < 39 or rj.size() == 3:
            state.step += 1
        state.commit()


train(state)
print(f"{rj.size()} ranks, state {state.step}", flush=True)
