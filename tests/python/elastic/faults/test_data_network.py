"""An elastic job whose ranks lose their connections while all processes live: they form a generation of the same members."""

import re
import uuid

from remote_jobs import ROOT, Running
from testbed import ETHERNET, INFINIBAND, Testbed

RANK = ROOT / "build" / "release" / "bin" / "elastic_rank"


def test_ranks_whose_connections_are_reset_form_a_generation_of_the_same_members():
    stop = ROOT / "build" / f"stop.{uuid.uuid4()}"  # where both hosts see it
    options = ("-H", "s1,s2", "--min-np", "2", "--rank-restarts", "0", "--network-interface", "ib0", "--grace-period", "1")
    try:
        with Testbed(hosts=2, networks=(ETHERNET, INFINIBAND)) as bed, Running(bed, *options, RANK, stop, 1000) as job:
            wait_for_generation(job, 0)
            bed.hosts[1].reset_connections("ib0")
            told = []
            for line in iter(job.process.stderr.readline, ""):
                told.append(line)
                if "(generation 4)" in line:  # so the third one has failed too
                    break
            bed.hosts[1].drop_nothing()
            wait_for_generation(job, 4)
            stop.touch()
            status, output, errors = job.finish()
            assert status == 0, errors
            assert all(re.search(r"rank \d on s\d: .*\. The job goes on with 2 ranks \(generation \d\)", line) for line in told), told
            assert sorted(re.findall(r"end: rank (\d) of 2, process (\d)", output)) in ([("0", "0"), ("1", "1")], [("0", "1"), ("1", "0")])
            job.wait_until_gone(*bed.hosts, bed.head)
    finally:
        stop.unlink(missing_ok=True)


def wait_for_generation(job, number):
    """Returns once both ranks have finished an allreduce in it, or a later one."""
    found = set()
    for line in iter(job.process.stdout.readline, ""):
        if (match := re.search(r"generation (\d+): rank (\d) of 2", line)) and int(match[1]) >= number:
            found.add(match[2])
            if found == {"0", "1"}:
                return
    raise AssertionError(f"never generation {number}: {job.process.stderr.read()}")
