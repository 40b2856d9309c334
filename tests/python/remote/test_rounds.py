"""Negotiation in rounds between hosts: small and many operations, join, init again, stalls, and ranks that die."""

import json
import os
import sys

import pytest
from remote_jobs import ROOT, Running, run
from testbed import Testbed

VARIABLES = {"PYTHONPATH": f"{ROOT / 'python'}:{ROOT / 'tests/python'}", "OMP_NUM_THREADS": "1"}

# A rank: the C interface, without NumPy, so that a rank is quick to start.
BEGINNING = """
import ctypes, json, os, sys
from runjob import basics, job
from older_functions import library

lib, check = library(), job.check
INT64, SUM = 5, 1

def shape(*numbers):
    return (ctypes.c_int64 * len(numbers))(*numbers), len(numbers)

def start(name, count=3, value=1):
    data, handle = (ctypes.c_int64 * count)(*[value] * count), ctypes.c_int64()
    check(lib.runjob_allreduce_async(name.encode(), data, data, *shape(count), INT64, SUM, 1, 1, 0, ctypes.byref(handle)))
    return handle, data

def finish(started):
    handle, data = started
    code = lib.runjob_wait(handle, -1.0)
    check(code)
    lib.runjob_release(handle)
    return list(data)

def allreduce(name, count=3, value=1):
    return finish(start(name, count, value))

def join():
    handle = ctypes.c_int64()
    check(lib.runjob_join_async(ctypes.byref(handle)))
    check(lib.runjob_wait(handle, -1.0))
    lib.runjob_release(handle)

def statistics():
    return json.loads(lib.runjob_statistics_json())

basics.init()
rank, size = basics.rank(), basics.size()
"""

EVERYTHING = BEGINNING + """
for turn in range(3):
    for i in range(300):
        assert allreduce("small", value=rank + i) == [sum(r + i for r in range(size))] * 3
    before = statistics()
    for i in range(20):
        started = [start(f"t{n}", 1 + n * 40, n) for n in sorted(range(60), key=lambda n: hash((n, rank, i)))]
        for each in started:
            data = finish(each)
            assert data == [data[0]] * len(data) and data[0] % size == 0
    after = statistics()
    assert after["control_messages"] == before["control_messages"], (before, after)
    assert after["rounds"] > before["rounds"]
    assert (after["host_messages"] > before["host_messages"]) == (basics.local_rank() == 0), (before, after)
    for i in range(rank):
        assert allreduce(f"uneven{i}") == [size - 1 - i] * 3
    join()
    assert allreduce("together") == [size] * 3
    basics.shutdown()
    basics.init()
basics.shutdown()
print("done", flush=True)
"""

STALL = BEGINNING + """
allreduce("first")
if rank == int(sys.argv[1]):
    open(sys.argv[2]).close()  # once the test has opened the other end
allreduce("late")
basics.shutdown()
"""

MUTUAL = BEGINNING + """
for turn in range(3):
    allreduce("grad")
allreduce("val" if rank == int(sys.argv[1]) else "grad")
"""

FOREVER = BEGINNING + """
print("ready", flush=True)
while True:
    allreduce("again")
"""


@pytest.fixture(scope="module")
def bed():
    with Testbed(hosts=4, visible=[sys.prefix]) as bed:
        yield bed


@pytest.mark.parametrize("hosts", ["s1:2,s2:2", "s1:1,s2:3,s3:2", "s1,s2,s3,s4"])
def test_small_and_many_operations_joins_and_init_again(bed, hosts):
    done = run(bed, "-H", hosts, sys.executable, "-c", EVERYTHING, variables=VARIABLES)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("done") in (4, 6)


@pytest.mark.parametrize("late", [0, 1, 2, 3, 4])
def test_a_stall_names_the_missing_rank_alone(bed, late):
    """Whether it is a leader or not, and although the messages of its host, and of others, wait for it."""
    go = f"/tmp/go{late}"
    inside = bed.hosts[late // 2].path(go)
    os.mkfifo(inside)
    inside.chmod(0o666)
    options = ["--stall-check-warning-time-seconds", "1", "-H", "s1:2,s2:2,s3"]
    with Running(bed, *options, sys.executable, "-c", STALL, str(late), go, variables=VARIABLES) as job:
        warning = next(line for line in job.process.stderr if "has waited" in line)
        inside.write_text("")
        status, _, errors = job.finish()
    inside.unlink()
    assert f" s for rank {late} on s{late // 2 + 1} (last submitted 'first')\n" in warning
    assert status == 0, errors


@pytest.mark.parametrize("alone", [0, 3])
def test_ranks_on_several_hosts_that_wait_for_each_other_are_all_named(bed, alone):
    options = ["--stall-check-shutdown-time-seconds", "1", "--status-file", "/tmp/status.json", "-H", "s1:2,s2:2"]
    done = run(bed, *options, sys.executable, "-c", MUTUAL, str(alone), variables=VARIABLES)
    assert done.returncode == 1, done.stderr
    (blame,) = [line for line in done.stderr.splitlines() if line.startswith("runjob: error: ")]
    waits = {
        0: "rank 0 on s1 waits in allreduce 'val' and ranks 1 (s1), 2 (s2), 3 (s2) in allreduce 'grad': the ranks take different steps",
        3: "ranks 0 (s1), 1 (s1), 2 (s2) wait in allreduce 'grad' and rank 3 on s2 in allreduce 'val': the ranks take different steps",
    }
    assert waits[alone] in blame, done.stderr
    status = json.loads(bed.head.path("/tmp/status.json").read_text())
    assert (status["cause"], status["first_failed_rank"]) == ("mutual wait", None)
    assert [rank["outcome"] for rank in status["ranks"]] == ["victim"] * 4


@pytest.mark.parametrize("victim", [0, 1, 2, 3])
def test_a_rank_that_is_killed_is_named_and_ends_the_job(bed, victim):
    with Running(bed, "-H", "s1:2,s2:2", sys.executable, "-c", FOREVER, variables=VARIABLES) as job:
        job.wait_for_lines(4)
        processes = [process for host in bed.hosts[:2] for process in job.on(host) if process.has_mark(f"RUNJOB_RANK={victim}")]
        processes[0].kill()
        status, _, errors = job.finish()
        assert status == 137, errors
        assert f"rank {victim} on s{victim // 2 + 1}" in errors
        job.wait_until_gone(*bed.hosts[:2])
