"""Operations of 20 to 160 KB between two lone ranks: up to 128 KiB the data travel with the announcement, also in vain."""

import json
import sys

import numpy  # noqa: F401  (the ranks need it)
import pytest
from remote_jobs import ROOT, run
from testbed import Testbed

VARIABLES = {"PYTHONPATH": str(ROOT / "python"), "OMP_NUM_THREADS": "1", "RUNJOB_CYCLE_TIME": "1"}

# Blocking operations; now and then rank 1 comes late, or both ranks wait for two operations that they began in another order, or
# something else comes in between.
RANK = """
import random, sys, time
import numpy
import runjob.numpy as hvd

hvd.init()
rank = hvd.rank()
choice = random.Random(3)
counts = (5000, 16384, 40000)

def inputs(name, step, of=rank):
    return numpy.arange(counts[name], dtype=numpy.float32) % 1000 + of + step

def part(whole, of=rank):
    return numpy.split(whole, 2)[of]

def check(name, step, result):
    assert numpy.array_equal(result, 2 * (numpy.arange(counts[name], dtype=numpy.float32) % 1000 + step) + 1), (name, step)

for step in range(int(sys.argv[1])):
    name = choice.randrange(len(counts))
    kind = choice.choice(["alone", "allgather", "alltoall", "reducescatter"] * 4 + ["late", "swapped", "broadcast", "new"])
    if kind == "late" and rank == 1:
        time.sleep(0.01)
    if kind == "swapped":
        names = [0, 1] if rank == 0 else [1, 0]
        handles = {each: hvd.allreduce_async(inputs(each, step), name=f"x{each}", op=hvd.Sum) for each in names}
        for each in names:
            check(each, step, hvd.synchronize(handles[each]))
    elif kind == "allgather":
        result = hvd.allgather(inputs(name, step), name=f"g{name}")
        assert numpy.array_equal(result, numpy.concatenate([inputs(name, step, of) for of in (0, 1)])), (kind, name, step)
    elif kind == "alltoall":
        result = hvd.alltoall(inputs(name, step), name=f"t{name}")
        assert numpy.array_equal(result, numpy.concatenate([part(inputs(name, step, of)) for of in (0, 1)])), (kind, name, step)
    elif kind == "reducescatter":
        result = hvd.reducescatter(inputs(name, step), name=f"r{name}", op=hvd.Sum)
        assert numpy.array_equal(result, part(inputs(name, step, 0) + inputs(name, step, 1))), (kind, name, step)
    elif kind == "broadcast":
        assert numpy.array_equal(hvd.broadcast(numpy.full(7000, rank, numpy.float32), step % 2, name="b"), numpy.full(7000, step % 2))
    elif kind == "new":
        check(name, step, hvd.allreduce(inputs(name, step), name=f"new {step}", op=hvd.Sum))
    else:
        check(name, step, hvd.allreduce(inputs(name, step), name=f"x{name}", op=hvd.Sum))
print("right", flush=True)
hvd.shutdown()
"""


@pytest.fixture(scope="module")
def bed():
    with Testbed(hosts=2, visible=[sys.prefix]) as bed:
        yield bed


def stages(trace):
    """The names and algorithms of the stages that have one."""
    return [(event["name"], event["args"]["algorithm"]) for event in trace if "algorithm" in event.get("args", {})]


@pytest.mark.parametrize("options", [[], ["--encrypt-data"]], ids=["plain", "encrypted"])
def test_results_are_right_whether_the_data_of_an_announcement_are_used_or_not(bed, options):
    trace = "/tmp/trace.json"
    done = run(bed, "-H", "s1:1,s2:1", *options, "--timeline-filename", trace, sys.executable, "-c", RANK, "400", variables=VARIABLES)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("right") == 2
    found = stages(json.loads(bed.hosts[0].run(["cat", trace]).stdout))
    for name in ("HOSTS_ALLREDUCE", "HOSTS_ALLGATHER", "HOSTS_ALLTOALL", "HOSTS_REDUCESCATTER"):
        assert found.count((name, "round of negotiation")) > 10
    assert ("HOSTS_ALLREDUCE_EXCHANGE", "direct exchange") in found


def test_nothing_waits_for_what_does_not_fit_the_sockets(bed):
    """A rank that goes on before its data have left must not wait for the other one, which waits for the data."""
    with Testbed(hosts=2, visible=[sys.prefix]) as bed:
        for host in bed.hosts:
            host.limit_socket_buffers()
        done = run(bed, "-H", "s1:1,s2:1", sys.executable, "-c", RANK, "200", variables=VARIABLES)
        assert (done.returncode, done.stderr) == (0, "")


def test_a_rank_that_is_lost_is_named(bed):
    program = RANK.replace('print("right"', 'import os\nif rank == 1: os.kill(os.getpid(), 9)\nwhile True: hvd.allreduce(inputs(0, 0), name="x0", op=hvd.Sum)\nprint("right"')
    done = run(bed, "-H", "s1:1,s2:1", sys.executable, "-c", program, "30", variables=VARIABLES)
    assert done.returncode == 128 + 9
    assert "rank 1 on s2" in done.stderr and "SIGKILL" in done.stderr
