"""What called_ranks starts as a rank: calls functions of test modules, one after the other, and sends back what they return."""

import os
import pickle
import sys
from multiprocessing import connection

import call_function
from runjob import basics

with connection.Client(sys.argv[1]) as caller:
    caller.send_bytes(pickle.dumps(int(os.environ.get("RUNJOB_RANK", 0))))
    while True:
        try:
            call = pickle.loads(caller.recv_bytes())
        except EOFError:
            break
        result = call_function.call(*call)
        basics.shutdown()
        caller.send_bytes(pickle.dumps(result))
