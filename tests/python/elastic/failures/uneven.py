"""A rank of an elastic job with two ranks, of which rank 0 takes fewer steps. Rank 1 sees its end before it asks for another generation."""

import os
import time

import numpy as np

import runjob.elastic
import runjob.numpy as rj
from runjob.exceptions import HorovodInternalError

rj.init()
state = runjob.elastic.ObjectState(step=0)


@runjob.elastic.run
def train(state):
    first = rj.broadcast_object(os.getpid(), root_rank=0)
    try:
        while state.step < 5 + rj.rank():
            rj.allreduce(np.ones(1), op=rj.Sum, name="one")
            state.step += 1
    except HorovodInternalError:
        while os.path.exists(f"/proc/{first}"):
            time.sleep(0.01)
        raise


train(state)
