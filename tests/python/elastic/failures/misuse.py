"""A rank of an elastic job with two ranks, of which process 1 is lost and replaced. Prints the errors of calls that cannot work:

a collective of a newcomer before elastic.run(), and one in a process set of a generation that is over.
"""

import os
import signal
import time

import numpy as np

import runjob.elastic
import runjob.numpy as rj
from runjob.exceptions import Error

number = int(os.environ["RUNJOB_PROCESS_NUMBER"])
rj.init(process_sets="dynamic")
state = runjob.elastic.ObjectState(step=0, after=0)
first = None
if number < 2:
    first = rj.add_process_set([0])
    if number == 0:
        assert rj.allreduce(np.ones(1), op=rj.Sum, process_set=first)[0] == 1
else:
    try:
        rj.allreduce(np.ones(1))
    except Error as error:
        print(f"newcomer: {type(error).__name__}: {error}", flush=True)


def use_first():
    try:
        rj.allreduce(np.ones(1), op=rj.Sum, process_set=first)
    except ValueError as error:
        print(f"old set: {error}", flush=True)


@runjob.elastic.run
def train(state):
    if first is not None and state.step > 0:
        use_first()
    while state.after < 3:
        if state.step == 5 and number == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        rj.allreduce(np.ones(1), name="one")
        time.sleep(0.01)
        state.step += 1
        if state.step > 5 and rj.size() == 2:
            state.after += 1
        state.commit()


train(state)
