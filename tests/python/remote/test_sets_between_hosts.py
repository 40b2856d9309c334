"""Process sets of ranks on several hosts: within one, across, over all; with shared memory and without."""

import sys

import pytest
from remote_jobs import ROOT, Running, run
from testbed import Testbed

VARIABLES = {"PYTHONPATH": f"{ROOT / 'python'}:{ROOT / 'tests/python'}", "OMP_NUM_THREADS": "1"}

# A rank: Python's process sets, with sums through the C interface. No framework is needed.
RANK = """
import array, ctypes
import older_functions
from runjob import basics, job, process_sets

lib = older_functions.library()
SUM, FLOAT64 = 1, 8

def start(name, some, count):
    values = array.array("d", [basics.rank() + 1.0]) * count
    handle, extents = ctypes.c_int64(), (ctypes.c_int64 * 1)(count)
    address = ctypes.c_void_p(values.buffer_info()[0])
    job.check(lib.runjob_allreduce_async(name.encode(), address, address, extents, 1, FLOAT64, SUM, 1.0, 1.0,
                                            some.process_set_id, ctypes.byref(handle)))
    return handle.value, values

def finish(handle):
    job.wait(handle)
    lib.runjob_release(handle)

basics.init(process_sets="dynamic")
members = [[0, 1], [2, 3], [0, 2], [1, 2, 3], [3]]
sets = [process_sets.add_process_set(ranks) for ranks in members] + [process_sets.global_process_set]
mine = [each for each in sets if each.included()]
"""

SUMS = RANK + """
for turn in range(30):
    first = (basics.rank() + turn) % len(mine)  # another order on each rank
    order = mine[first:] + mine[:first]
    count = (1, 1000, 100000)[turn % 3]
    for some, (handle, values) in [(some, start("x", some, count)) for some in order][::-1]:
        finish(handle)
        assert set(values) == {sum(rank + 1.0 for rank in some.ranks)}, (some.ranks, values[0])
assert process_sets.remove_process_set(sets[2])
assert process_sets.add_process_set([1, 3]).process_set_id == 3
basics.shutdown()
print("right", flush=True)
"""

FOREVER = RANK + """
print("ready", flush=True)
while True:
    for some in mine:
        handle, values = start("x", some, 100000)
        finish(handle)
"""


@pytest.fixture(scope="module")
def bed():
    with Testbed(hosts=4, visible=[sys.prefix]) as bed:
        yield bed


@pytest.mark.parametrize("hosts", ["s1:2,s2:2", "s1:3,s2:1", "s1,s2,s3,s4"])
@pytest.mark.parametrize("shared_memory", ["1", "0"])
def test_overlapping_sets(bed, hosts, shared_memory):
    variables = {**VARIABLES, "RUNJOB_SHARED_MEMORY": shared_memory}
    done = run(bed, "-H", hosts, sys.executable, "-c", SUMS, variables=variables)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("right") == 4


@pytest.mark.parametrize("victim", [0, 3])
def test_a_killed_rank_ends_all_sets_on_all_hosts(bed, victim):
    with Running(bed, "-H", "s1:2,s2:2", sys.executable, "-c", FOREVER, variables=VARIABLES) as job:
        job.wait_for_lines(4)
        processes = [process for host in bed.hosts[:2] for process in job.on(host) if process.has_mark(f"RUNJOB_RANK={victim}")]
        assert processes, job.finish()
        processes[0].kill()
        status, _, errors = job.finish()
        assert status == 137, errors
        assert f"rank {victim}" in errors
        job.wait_until_gone(*bed.hosts[:2])
