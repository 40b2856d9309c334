"""Processes that mpirun or mpiexec has started on several hosts, over SSH."""

import os
import pathlib

import pytest
from plain_rank import PRELUDE, PYTHON, TWICE
from testbed import HostSpec, Testbed

#: Where Debian has its libpmix.
PMIX = os.path.dirname(os.path.realpath(next(pathlib.Path("/usr/lib").glob("*/libpmix.so.2"), "/usr/lib/pmix2/lib/libpmix.so.2")))


@pytest.fixture(scope="module")
def bed():
    with Testbed(2) as bed:
        yield bed


def mpirun(bed, launcher, code, hosts="s1:2,s2:1", **variables):
    """Three ranks, filling one host after the other."""
    if "mpich" in launcher.name:
        where = ["-hosts", hosts]
    else:
        where = ["-H", hosts, "--map-by", "slot", *(word for name in variables for word in ("-x", name))]
    options = [word for word in launcher.command if word not in ("--oversubscribe", "--allow-run-as-root", "--mca", "btl", "self,vader")]
    return bed.head.run([*options, *where, "-np", "3", PYTHON, "-c", PRELUDE + code], variables=variables, timeout=100)


def test_ranks_on_two_hosts_are_a_job_again_and_again(bed, launcher):
    done = mpirun(bed, launcher, TWICE)
    assert done.returncode == 0, done.stderr
    places = ["[0, 3, 0, 2, 0, 2] 6.0", "[1, 3, 1, 2, 0, 1] 6.0", "[2, 3, 0, 1, 1, 2] 6.0"]
    assert sorted(done.stdout.splitlines()) == sorted(places * 2)


def test_a_rank_of_another_host_that_does_not_come_is_an_error(bed, launcher):
    bed.hosts[0].run(["sh", "-c", "rm -f /tmp/said.*"], check=True)
    code = """
number = os.environ.get("PMIX_RANK") or os.environ["PMI_RANK"]
if number == "2":
    # Open MPI ends it because of the others; MPICH leaves it alone
    time.sleep(6 if "PMI_FD" in os.environ else 100)
try:
    join()
except RuntimeError as error:
    say(error)
open(f"/tmp/said.{number}", "w").close()
while len([name for name in os.listdir("/tmp") if name.startswith("said.")]) < 2:  # one that ends makes the launcher end all
    time.sleep(0.01)
"""
    who = "not all 3 ranks have come" if "mpich" in launcher.name else "rank 2 has not come"
    done = mpirun(bed, launcher, code, RUNJOB_START_TIMEOUT="1")
    assert done.stdout.count(f"init(): {who} in 1 s; ") == 2, done.stderr


def test_a_host_without_libpmix_is_told_what_to_install():
    with Testbed([HostSpec(hide=[PMIX])]) as bed:
        variables = {"PMIX_NAMESPACE": "a", "PMIX_RANK": "0", "OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2"}
        done = bed.hosts[0].run([PYTHON, "-c", PRELUDE + "join()"], variables=variables)
    assert done.returncode == 1
    assert "init(): Open MPI's mpirun has started this process, and finding the other ranks needs libpmix.so.2 (" in done.stderr
    assert "install it (Debian and Ubuntu: apt-get install libpmix2), add its folder to LD_LIBRARY_PATH, or start" in done.stderr
