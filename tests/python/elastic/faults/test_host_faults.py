"""An elastic job on four hosts whose cables are pulled for a moment, of which one freezes, one is cut off, and one loses its power: a program
of the C interface, whose ranks check every value."""

import re
import time
import uuid

from remote_jobs import ROOT, Running
from testbed import Testbed

RANK = ROOT / "build" / "release" / "bin" / "elastic_rank"


class Generations:
    """What rank 0 of a running job prints."""

    def __init__(self, job):
        self._job = job
        self.sizes = []

    def wait_for(self, size):
        """Returns once the job has had so many ranks after the last call."""
        for line in iter(self._job.process.stdout.readline, ""):
            if match := re.search(r"generation \d+: rank 0 of (\d+)", line):
                self.sizes.append(int(match[1]))
                if self.sizes[-1] == size:
                    return
        raise AssertionError(f"never {size} ranks, but {self.sizes}: {self._job.process.stderr.read()}")


def test_a_job_lives_through_the_faults_of_its_hosts():
    stop = ROOT / "build" / f"stop.{uuid.uuid4()}"  # where all hosts see it
    options = ("-H", "s1:2,s2:2,s3:2,s4:2", "--min-np", "2", "--rank-restarts", "100", "--blacklist-cooldown-range", "1", "2")
    try:
        with Testbed(hosts=4) as bed, Running(bed, *options, "--grace-period", "1", RANK, stop, 1000) as job:
            _, frozen, cut, dead = bed.hosts
            generations = Generations(job)
            generations.wait_for(8)
            for host in bed.hosts[1:]:  # for less than the five seconds after which a host is lost
                host.cut_network()
                time.sleep(0.3)
                host.restore_network()
            frozen.freeze()
            cut.cut_network()
            generations.wait_for(4)
            frozen.thaw()
            cut.restore_network()
            generations.wait_for(8)
            dead.kill()
            generations.wait_for(6)
            stop.touch()
            status, output, errors = job.finish()
            del bed.hosts[3]
            assert status == 0, errors
            ends = re.findall(r"end: rank (\d) of 6, process \d+: (\d+) steps", output)
            assert sorted(rank for rank, _ in ends) == list("012345") and len({steps for _, steps in ends}) == 1, output
            # Both hosts are lost at the same time or one after the other, and come back so; nothing else began a generation.
            assert set(generations.sizes) <= {8, 7, 6, 5, 4} and generations.sizes[0] == 8, generations.sizes
            for name in ("(s2|s3)", "(s4)"):
                assert re.search(rf"lost the agent on {name}: .*\. The job goes on with .*; no new process starts on (.*, )?\1 for 1 s", errors), errors
            assert "(generation 1)" in errors and "killed by signal" not in errors, errors
            job.wait_until_gone(*bed.hosts, bed.head)
    finally:
        stop.unlink(missing_ok=True)
