"""Jobs on this host whose control group refuses them another process or more memory. The ranks are small, with NumPy."""

import os
import re
import signal

import jobs
import loops
import pytest
from test_faulty_ranks import ranks_of
from testbed.control_group import ControlGroup

pytestmark = pytest.mark.usefixtures("root")
OURS = 4  # runjob, its agent and two guards

# Goes on after a loss, or once its argument is there. With "hungry" process 1 takes too much memory in step 5.
ELASTIC = """
import os, sys, time
import numpy
import runjob.elastic, runjob.numpy as hvd
from runjob.exceptions import HorovodInternalError
hvd.init()
state = runjob.elastic.ObjectState(step=0)
number = os.environ["RUNJOB_PROCESS_NUMBER"]

@runjob.elastic.run
def train(state):
    while hvd.size() == 2 or state.step < 20:
        try:
            if state.step == 5 and sys.argv[1:] == ["hungry"] and number == "1":
                hog = numpy.ones(1 << 27)
            hvd.allreduce(numpy.ones(100), name="ones")
        except HorovodInternalError:
            while sys.argv[1:] != ["hungry"] and not os.path.exists(sys.argv[1]):
                time.sleep(0.01)
            raise
        state.step += 1
        state.commit()
        if state.step == 3:
            print("ready", flush=True)

train(state)
print("done", hvd.size(), flush=True)
"""


def test_a_rank_that_cannot_be_started_is_named_with_the_reason():
    with ControlGroup(pids=OURS + 1) as group, jobs.Marked("-np", "2", "--grace-period", "1", "sleep", "600", preexec_fn=group.join) as job:
        status, _, errors = job.finish()
        assert (status, errors) == (125, "runjob: error: localhost: cannot start rank 1: Resource temporarily unavailable\n")
        assert job.alive() == []


def test_the_others_go_on_when_no_process_can_be_started_in_place_of_a_lost_rank(tmp_path):
    go_on = tmp_path / "go on"
    options = ("-np", "2", "--min-np", "1", "--rank-restarts", "1", "--grace-period", "1")
    with ControlGroup(pids=1000) as group, jobs.Marked(*options, *loops.command(ELASTIC, go_on), env=loops.VARIABLES, preexec_fn=group.join) as job:
        job.wait_for_lines(2)
        ranks = ranks_of(job)
        group.release(ranks[0])  # it begins its next generation with threads
        group.set(1)
        os.kill(ranks[1], signal.SIGKILL)
        line = job.process.stderr.readline()
        assert line == "runjob: warning: a new process on localhost could not be started: Resource temporarily unavailable\n"
        group.set(1000)
        go_on.touch()
        status, output, errors = job.finish()
        assert (status, output.count("done 1")) == (0, 1), errors
        # Whether the host is excluded depends on the commits that the rank has lived through.
        assert re.search(r"rank 1 on localhost was killed by signal 9 .*\. The job goes on with 1 rank \(generation 1\)", errors)
        assert job.alive() == []


def test_a_rank_without_memory_is_named_with_the_out_of_memory_killer():
    """The limit is far above what the others take, and the kernel kills the largest."""
    code = loops.BEGINNING + "hvd.barrier()\nprint('ready', flush=True)\nif rank == 1: hog = numpy.ones(1 << 27)\nhvd.barrier()\n"
    with ControlGroup(memory=400 << 20) as group:
        with jobs.Marked("-np", "2", "--grace-period", "1", *loops.command(code), env=loops.VARIABLES, preexec_fn=group.join) as job:
            status, _, errors = job.finish()
            assert status == 137, errors
            assert re.search(r"runjob: error: rank 1 on localhost \(pid \d+\) was killed by signal 9 \(SIGKILL\), probably by the kernel's "
                             r"out-of-memory killer", errors)  # fmt: skip
            assert job.alive() == []


def test_the_others_go_on_when_the_out_of_memory_killer_takes_a_rank():
    options = ("-np", "2", "--min-np", "1", "--rank-restarts", "0", "--grace-period", "1")
    with ControlGroup(memory=400 << 20) as group:
        with jobs.Marked(*options, *loops.command(ELASTIC, "hungry"), env=loops.VARIABLES, preexec_fn=group.join) as job:
            status, output, errors = job.finish()
            assert (status, output.count("done 1")) == (0, 1), errors
            assert re.search(r"rank 1 on localhost was killed by signal 9 \(SIGKILL\), probably by the kernel's out-of-memory killer.*\. "
                             r"The job goes on with 1 rank \(generation 1\)", errors)  # fmt: skip
            assert job.alive() == []
