"""Which place a process has in an elastic job, and what a lost one leaves behind."""

import pathlib
import re
import sys

from jobs import by_rank
from remote_jobs import ROOT, run
from testbed import Testbed

PLACES = pathlib.Path(__file__).with_name("places.py")
VARIABLES = {"PYTHONPATH": str(ROOT / "python"), "OMP_NUM_THREADS": "1"}


def test_both_hosts_lose_their_local_rank_0_and_get_it_back():
    with Testbed(hosts=2) as bed:
        job = run(bed, "-H", "s1:2,s2:2", "--min-np", "2", sys.executable, PLACES, "4,2,4", env=VARIABLES)
        assert job.returncode == 0, job.stderr
        lines = [line for of_rank in by_rank(job.stdout).values() for line in of_rank]
        ends = sorted(line for line in lines if line.startswith("process "))
        assert [re.match(r"process (\d): local rank (\d)", end).groups() for end in ends] == [("1", "1"), ("3", "1"), ("4", "0"), ("5", "0")]
        # The two may be lost in one generation or in two.
        for end in ends[:2]:
            rates = re.search(r"rates \[(.*)\]", end).group(1)
            sizes = [int(size) for size in re.findall(r"\((\d),", rates)]
            assert (sizes[0], sizes[-1], min(sizes)) == (4, 4, 2)
            assert rates == ", ".join(f"({size}, {0.5 * size})" for size in sizes)
            assert len(sizes) == 1 + len(re.findall(r" \(generation \d+\), ", job.stderr))
        # While a host has only local rank 1, it is as large as local_size().
        assert lines.count("size 2: local rank 1 of 1") == 2
        # A replacement runs on s1 after the daemon of process 0 has been killed; the one on s2 sees none of them.
        assert lines.count("left of process 0: []") == 2
