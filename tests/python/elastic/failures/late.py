"""A rank of an elastic job with three ranks, of which process 1 is late for ever in step 5:

    late.py in_a_step     it does not come to the next collective
    late.py after_a_loss  process 0 ends, and process 1 does not come back for the next generation
"""

import os
import sys
import time

import numpy as np

import runjob.elastic
import runjob.numpy as rj
from runjob.exceptions import HorovodInternalError

what, number = sys.argv[1], os.environ["RUNJOB_PROCESS_NUMBER"]
rj.init()
state = runjob.elastic.ObjectState(step=0)


@runjob.elastic.run
def train(state):
    while state.step < 20 or rj.size() < 3:
        if state.step == 5 and (what, number) == ("in_a_step", "1"):
            time.sleep(600)
        if state.step == 5 and (what, number) == ("after_a_loss", "0"):
            os._exit(3)
        try:
            rj.allreduce(np.ones(1), op=rj.Sum, name="one")
        except HorovodInternalError:
            if (what, number) == ("after_a_loss", "1"):
                time.sleep(600)
            raise
        time.sleep(0.01)
        state.step += 1
        state.commit()


train(state)
print(f"process {number}: {rj.size()}", flush=True)
