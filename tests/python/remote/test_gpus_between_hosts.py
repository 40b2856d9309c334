"""GPUs of two hosts, over the stand-ins of CUDA and NCCL: every collective, through NCCL and through the hosts' memory, the loss of a
rank, and what somebody on the network sees with --encrypt-data. The stand-in's ranks meet in the home directory that the hosts share. The ranks' programs are those of packaging/gpu_check.
"""

import os
import sys

import pytest
from remote_jobs import ROOT, run
from sniffer import SECRET, sniffing
from testbed import HOME, Testbed

PROGRAMS = ROOT / "packaging/gpu_check"
STAND_INS = ROOT / "build/release/lib/gpu_stand_in"
THROUGH_HOSTS = "tensors on GPUs go through the host's memory"

# Each rank's tensor with SECRET goes from its GPU to all other ranks.
SENDER = f"""
import numpy
import runjob.numpy as hvd
from arrays import Gpu, GpuArray, described, finish, submit
hvd.init()
gpu = Gpu(hvd.local_rank())
for root in range(hvd.size()):
    values = numpy.frombuffer({SECRET!r} * 20000, numpy.uint8) if hvd.rank() == root else numpy.zeros({len(SECRET) * 20000}, numpy.uint8)
    array = GpuArray(gpu, values)
    finish(gpu, submit(gpu, "secret", "broadcast", [described(array, array, "uint8")], root=root))
    assert gpu.read(array.address, array.shape, "uint8").tobytes() == {SECRET!r} * 20000
hvd.shutdown()
print("done")
"""

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


def test_with_encryption_nobody_on_the_network_reads_what_gpus_send_over_the_stand_ins(bed):
    """The stand-in of NCCL sends nothing over the network, so that tensors in clear are seen where they go through the hosts."""

    def sniffed(*options, **variables):
        with sniffing(bed.hosts[1]) as found:
            done = gpu_job(bed, *options, sys.executable, "-c", SENDER, **variables)
        assert (done.returncode, done.stdout.count("done")) == (0, 4), done.stdout + done.stderr
        return found, done.stderr

    least = 2 * 20000 * len(SECRET)
    clear, error = sniffed(RUNJOB_NCCL_LIBRARY="/nowhere/libnccl.so.2")
    assert clear.packets > 0 and clear.bytes > least, error
    sealed, error = sniffed("--encrypt-data")
    assert (sealed.packets, sealed.bytes > least) == (0, True)
    assert error.count(THROUGH_HOSTS) == 1 and "RUNJOB_NCCL_UNENCRYPTED=1 on all ranks" in error
    _, error = sniffed("--encrypt-data", RUNJOB_NCCL_UNENCRYPTED="1")
    assert THROUGH_HOSTS not in error  # NCCL has sent them
