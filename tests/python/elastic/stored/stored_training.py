"""A rank of an elastic job that counts steps, for --commit-dir.

    stored_training.py STEPS [KIND]

KIND changes the program: "longer" has other arrays, "named" other values, "own" a state of its own class, "slow" waits in each step, and
"twice" has a second state.
"""

import sys
import time

import numpy as np

import runjob.elastic
import runjob.numpy as rj

kind = sys.argv[2] if len(sys.argv) > 2 else ""


class Own(runjob.elastic.State):
    def save(self):
        pass

    restore = sync = save


rj.init()
more = {"named": {"more": 1}}.get(kind, {})
total = np.zeros(4 if kind == "longer" else 3)
state = Own() if kind == "own" else runjob.elastic.ObjectState(step=0, total=total, **more)


@runjob.elastic.run
def train(state):
    print("from", state.step, flush=True)
    while state.step < int(sys.argv[1]):
        time.sleep(0.02 if kind == "slow" else 0)
        state.total += rj.allreduce(np.ones(3), op=rj.Sum, name="ones")
        state.step += 1
        state.commit()
        if state.step == 20 and kind == "slow":
            print("mark", flush=True)


train(state)
if kind == "twice":
    second = runjob.elastic.ObjectState(other=1)
    runjob.elastic.run(lambda state: state.commit())(second)
print(state.step, state.total.tolist(), flush=True)
