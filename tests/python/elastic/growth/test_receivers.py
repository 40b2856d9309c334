"""Which ranks receive the state when a job grows: over the network of each host, nobody but the newcomer."""

import pathlib
import sys

from jobs import by_rank
from remote_jobs import ROOT, Running
from testbed import Testbed

RECEIVING = pathlib.Path(__file__).with_name("receiving.py")
VARIABLES = {"PYTHONPATH": str(ROOT / "python"), "OMP_NUM_THREADS": "1"}


def write_hosts(bed, text):
    """Puts a new file in the old one's place, so that the script never prints a part of it."""
    done = bed.head.run(["sh", "-c", "cat > /tmp/hosts.new && mv /tmp/hosts.new /tmp/hosts"], input=text)
    assert done.returncode == 0, done.stderr


def test_only_the_newcomer_receives_the_state():
    with Testbed(hosts=3) as bed:
        write_hosts(bed, "s1\ns2\n")
        options = ("--host-discovery-script", "cat /tmp/hosts", "-np", "2", "--max-np", "3")
        with Running(bed, *options, sys.executable, str(RECEIVING), env=VARIABLES) as job:
            job.wait_for_lines(1)
            write_hosts(bed, "s1\ns2\ns3\n")
            status, output, errors = job.finish()
            assert status == 0, errors
            assert {rank: lines[-1] for rank, lines in by_rank(output).items()} == {
                0: "received [False, False], equal True",
                1: "received [True, False], equal True",
                2: "received [True], equal True",
            }
