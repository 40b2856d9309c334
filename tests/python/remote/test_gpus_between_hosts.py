"""GPUs of two hosts, over the stand-ins of CUDA and NCCL: every collective, through NCCL and through the hosts' memory, and the loss of a
rank. The stand-in's ranks meet in the home directory that the hosts share. The ranks' programs are those of packaging/gpu_check.
"""

import os
import sys

import pytest
from remote_jobs import ROOT, run
from testbed import HOME, Testbed

PROGRAMS = ROOT / "packaging/gpu_check"
STAND_INS = ROOT / "build/release/lib/gpu_stand_in"
THROUGH_HOSTS = "tensors on GPUs go through the host's memory"

pytestmark = pytest.mark.skipif(not (STAND_INS / "libcuda.so.1").exists(), reason="the stand-ins of CUDA and NCCL are not built")


@pytest.fixture(scope="module")
def bed():
    with Testbed(hosts=2, shared_home=True, visible=[sys.prefix]) as bed:
        yield bed


def gpu_job(bed, *arguments, **variables):
    """Two ranks on each host, with a GPU each."""
    stand_ins = {"LD_LIBRARY_PATH": str(STAND_INS), "RUNJOB_STAND_IN_FOLDER": HOME, "RUNJOB_STAND_IN_GPUS": "2"}
    python = {"PYTHONPATH": f"{ROOT / 'python'}:{PROGRAMS}", "OMP_NUM_THREADS": "1"}
    return run(bed, "-H", "s1:2,s2:2", *arguments, variables={**python, **stand_ins, **variables})


@pytest.mark.parametrize("library", ["", "/nowhere/libnccl.so.2"], ids=["NCCL", "through the hosts"])
def test_every_collective_of_gpus_on_two_hosts_over_the_stand_ins(bed, library):
    variables = {"RUNJOB_NCCL_LIBRARY": library} if library else {}
    done = gpu_job(bed, sys.executable, PROGRAMS / "collectives.py", 7, 100, **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "checked" in done.stdout
    assert (THROUGH_HOSTS in done.stderr) == bool(library)


def test_a_rank_on_the_other_host_is_killed_while_gpus_are_at_work_over_the_stand_ins(bed):
    folder = bed.head.path(HOME) / "mark"
    folder.mkdir()
    os.chown(folder, *(bed.head.path(HOME).stat().st_uid, bed.head.path(HOME).stat().st_gid))
    done = gpu_job(bed, "--grace-period", 20, sys.executable, PROGRAMS / "killed_rank.py", f"{HOME}/mark", 20)
    assert done.returncode == 137, done.stdout + done.stderr
    for rank in range(3):
        assert f"rank {rank}: error after " in done.stdout
        assert f"rank {rank}: init() and an allreduce work again" in done.stdout
    assert "rank 3 on s2" in done.stdout
