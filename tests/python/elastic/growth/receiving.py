"""A rank of an elastic job that grows from two ranks to three: prints, for each generation, whether the state has come over this host's
network, and at the end whether all ranks have the same one."""

import pathlib
import time

import numpy as np

import runjob.elastic
import runjob.numpy as rj

STATE_BYTES = 24 << 20


def received():
    """Bytes that this host has received, by its own count."""
    rows = [line.split() for line in pathlib.Path("/proc/self/net/dev").read_text().splitlines()[2:]]
    return sum(int(row[1]) for row in rows if row[0] != "lo:")


class State(runjob.elastic.ObjectState):
    def sync(self):
        before = received()
        super().sync()
        came = received() - before
        assert came < STATE_BYTES // 8 or came >= STATE_BYTES, came
        received_in.append(came >= STATE_BYTES)


rj.init()
received_in = []
weights = np.full(STATE_BYTES // 8, 1.0 + rj.rank())
state = State(weights=weights, step=0, after=0)


@runjob.elastic.run
def train(state):
    while state.after < 3:
        state.weights *= 1.0 + 2.0**-10 * state.step
        rj.allreduce(np.ones(4), op=rj.Sum, name="ones")
        time.sleep(0.01)
        if state.step == 0 and rj.rank() == 0:
            print("ready", flush=True)
        state.step += 1
        state.after += rj.size() == 3
        state.check_host_updates()


train(state)
theirs = rj.broadcast(state.weights, root_rank=0, name="rank 0's")
print(f"received {received_in}, equal {np.array_equal(state.weights, theirs)}", flush=True)
