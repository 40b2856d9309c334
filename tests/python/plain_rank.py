"""A rank that needs no package but the C library: for hosts of the testbed, with the system's Python."""

import os

from ranks import ROOT

PYTHON = "/usr/bin/python3"
LIBRARY = os.environ.get("RUNJOB_LIBRARY", str(ROOT / "build" / "release" / "lib" / "librunjob.so"))

#: check(code); join() and leave(); total(number): the sum of all ranks' numbers; say(words).
PRELUDE = f"""
import ctypes, os, sys, time
library = ctypes.CDLL({LIBRARY!r})
library.runjob_error_message.restype = ctypes.c_char_p
def check(code):
    if code != 0:
        raise RuntimeError(library.runjob_error_message().decode())
def join():
    check(library.runjob_init())
def leave():
    check(library.runjob_shutdown())
def place():
    return [getattr(library, "runjob_" + name)() for name in ("rank", "size", "local_rank", "local_size", "cross_rank", "cross_size")]
def total(number):
    values = (ctypes.c_double * 1000)(*[number] * 1000)
    shape = (ctypes.c_int64 * 1)(1000)
    handle = ctypes.c_int64()
    check(library.runjob_allreduce_async(b"x", values, values, shape, 1, 8, 1,  # float64, sum
          ctypes.c_double(1), ctypes.c_double(1), 0, ctypes.byref(handle)))
    check(library.runjob_wait(handle, ctypes.c_double(-1)))
    return values[999]
def say(*words):
    sys.stdout.write(" ".join(map(str, words)) + "\\n")
    sys.stdout.flush()
"""

#: Is in the job twice, and says each time where.
TWICE = """
for _ in range(2):
    join()
    say(place(), total(place()[0] + 1))
    leave()
"""
