"""A rank of an elastic job with three ranks, of which process 1 fails in step 13:

    failing.py kill    it kills itself
    failing.py slow    the same, and process 2 comes back a second later
    failing.py raise   it raises ValueError, and ends a second after it has left the job
    failing.py crash   the same; process 2 ends because of that, and sooner
    failing.py retry   it raises HorovodInternalError

Commits every five steps, and checks for changed hosts after the others.
"""

import atexit
import os
import signal
import sys
import time

what = sys.argv[1]
number = os.environ["RUNJOB_PROCESS_NUMBER"]
if what in ("raise", "crash") and number == "1":
    atexit.register(time.sleep, 1)  # after runjob's own, which leaves the job

import numpy as np  # noqa: E402

import runjob.elastic  # noqa: E402
import runjob.numpy as rj  # noqa: E402
from runjob.exceptions import HorovodInternalError, PeerLostError  # noqa: E402

rj.init()
state = runjob.elastic.ObjectState(step=0)
begun = []


@runjob.elastic.run
def train(state):
    begun.append(state.step)
    while state.step < 20:
        if state.step == 13 and len(begun) == 1 and number == "1":
            if what in ("kill", "slow"):
                os.kill(os.getpid(), signal.SIGKILL)
            if what == "retry":
                raise HorovodInternalError("of the program")
            raise ValueError("a sample without a label")
        try:
            rj.allreduce(np.ones(1), op=rj.Sum, name="one")
        except PeerLostError:
            if what == "crash" and number == "2":
                sys.exit("what comes of a loss")
            if what == "slow" and number == "2":
                time.sleep(1)
            raise
        state.step += 1
        state.commit() if state.step % 5 == 0 else state.check_host_updates()


train(state)
print(rj.rank(), rj.size(), state.step, begun, flush=True)
