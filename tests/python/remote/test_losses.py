"""What ranks on several hosts do when their data network is cut, and when a rank does not read what the others send."""

import os
import pathlib
import signal
import sys
import time

import numpy  # noqa: F401  (the ranks need it)
import pytest
from remote_jobs import ROOT, Running
from testbed import ETHERNET, INFINIBAND, Testbed

# The launcher's SSH goes over eth0, the ranks' data over ib0.
DATA_NETWORK = ["--network-interface", "ib0"]
VARIABLES = {"PYTHONPATH": str(ROOT / "python"), "OMP_NUM_THREADS": "1", "RUNJOB_GLOO_TIMEOUT_SECONDS": "200"}

# A rank: allreduces of 32 MiB, more than the buffers of a connection take, until all of them have counted to the end.
RANK = """
import ctypes, os, sys
import numpy as np
from runjob import _library

lib = _library.library()
check = lambda code: code == 0 or sys.exit(lib.runjob_error_message().decode())
check(lib.runjob_init())
rank, size = int(os.environ["RUNJOB_RANK"]), int(os.environ["RUNJOB_SIZE"])
elements = 8 << 20
data, out, shape = np.empty(elements, np.float32), np.empty(elements, np.float32), (ctypes.c_int64 * 1)(elements)
pointer = lambda array: array.ctypes.data_as(ctypes.c_void_p)
for step in range(int(sys.argv[1])):
    data.fill(rank + step)
    handle = ctypes.c_int64()
    check(lib.runjob_allreduce_async(b"x", pointer(data), pointer(out), shape, 1, 7, 1, ctypes.c_double(1), ctypes.c_double(1), 0, ctypes.byref(handle)))
    check(lib.runjob_wait(handle, -1))
    lib.runjob_release(handle)
    assert (out == sum(range(size)) + size * step).all()
    print("step", step, os.getpid(), flush=True)
check(lib.runjob_shutdown())
"""


@pytest.fixture(scope="module")
def bed():
    with Testbed(hosts=2, networks=(ETHERNET, INFINIBAND), visible=[sys.prefix]) as bed:
        yield bed


def processor_seconds(process):
    """What all threads of a process have taken so far."""
    fields = pathlib.Path(f"/proc/{process.machine_pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rank_on(running, host):
    (rank,) = [process for process in running.on(host) if "RUNJOB_RANK" in process.environment]
    return rank


def job(bed, steps):
    return Running(bed, *DATA_NETWORK, "-H", "s1:1,s2:1", sys.executable, "-u", "-c", RANK, steps, variables=VARIABLES)


def test_hosts_that_do_not_reach_each_other_any_more_are_named_with_the_network(bed):
    with job(bed, 100000) as running:
        running.wait_for_lines(6)
        bed.hosts[1].cut_network("ib0")
        try:
            status, _, errors = running.finish()
        finally:
            bed.hosts[1].restore_network("ib0")
        assert status != 0
        assert "has acknowledged nothing for 5 s over ib0" in errors
        assert "10.78.0.1" in errors or "10.78.0.2" in errors
        running.wait_until_gone(*bed.hosts)


def test_a_rank_that_reads_nothing_for_a_while_loses_no_connection(bed):
    """Its host's kernel answers for it, with full buffers, for longer than a silent host would be given."""
    seconds = float(os.environ.get("TESTS_STOPPED_SECONDS", "8"))
    with job(bed, 8) as running:
        running.wait_for_lines(4)
        rank, other = rank_on(running, bed.hosts[1]), rank_on(running, bed.hosts[0])
        rank.kill(signal.SIGSTOP)
        time.sleep(2)  # then the other one certainly waits for it
        before = processor_seconds(other)
        time.sleep(seconds - 2)
        used = processor_seconds(other) - before
        assert running.process.poll() is None
        rank.kill(signal.SIGCONT)
        # It sleeps: a rank that spun would take nearly all of this time.
        assert used < (seconds - 2) / 20
        status, output, errors = running.finish(120)
        assert (status, errors) == (0, "")
        assert output.count("step 7") == 2
