"""Elastic jobs in Python on three hosts, of which one freezes and goes on later, or is cut off and comes back again and again."""

import pathlib
import re
import sys
import time

from jobs import by_rank
from remote_jobs import ROOT, Running
from testbed import Testbed

SIZES = pathlib.Path(__file__).parents[1] / "sizes.py"
VARIABLES = {"PYTHONPATH": str(ROOT / "python"), "OMP_NUM_THREADS": "1"}
OPTIONS = ("-H", "s1,s2,s3", "--min-np", "2", "--grace-period", "1", "--blacklist-cooldown-range", "1", "2")


def wait_for_size(job, size):
    """Reads the job's output up to the line that rank 0 prints when the size has changed to this one."""
    for line in iter(job.process.stdout.readline, ""):
        if line.rstrip().endswith(f"size {size}"):
            return
    raise AssertionError(f"the job never had {size} ranks: {job.process.stderr.read()}")


def check_end(bed, job, sizes):
    """The job ends well with three ranks; each loss and each return of s2 has begun one generation, and nothing is left."""
    status, output, errors = job.finish(timeout=120)
    assert status == 0, errors
    last = {re.sub(r"^process \d+ on s\d: ", "", lines[-1]) for lines in by_rank(output).values()}
    assert last == {f"rank {rank} of 3, {sizes}" for rank in range(3)}, output
    assert re.search("process 0 on s1: rank [01] of 3", output), output
    assert re.findall(r"goes on with (\d) ranks \(generation \d+\)", errors) == [str(size) for size in sizes[1:]], errors
    losses = re.findall(r"lost the agent on s2: .*\. The job goes on with 2 ranks .*; no new process starts on s2 for (\d) s\.\n", errors)
    assert losses == ["1", "2"][: sizes.count(2)], errors
    assert len(re.findall(r": the hosts have changed: rank 2 on s2 has come\. The job goes on", errors)) == sizes.count(2), errors
    job.wait_until_gone(*bed.hosts, bed.head)


def test_a_host_that_freezes_is_replaced_and_comes_back_when_it_goes_on():
    with Testbed(hosts=3) as bed, Running(bed, *OPTIONS, sys.executable, str(SIZES), "3,2,3", env=VARIABLES) as job:
        wait_for_size(job, 3)
        bed.hosts[1].freeze()
        wait_for_size(job, 2)
        bed.hosts[1].thaw()
        check_end(bed, job, [3, 2, 3])


def test_a_host_that_flaps_is_lost_when_it_is_away_for_long_and_only_then():
    with Testbed(hosts=3) as bed, Running(bed, *OPTIONS, sys.executable, str(SIZES), "3,2,3,2,3", env=VARIABLES) as job:
        flapping = bed.hosts[1]
        wait_for_size(job, 3)
        for _ in range(3):  # shorter than the five seconds after which a host is lost
            flapping.cut_network()
            time.sleep(0.3)
            flapping.restore_network()
        for _ in range(2):
            flapping.cut_network()
            wait_for_size(job, 2)
            flapping.restore_network()
            wait_for_size(job, 3)
        check_end(bed, job, [3, 2, 3, 2, 3])
