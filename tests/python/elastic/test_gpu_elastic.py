"""Elastic jobs in C++ whose state lies on a GPU, over the stand-ins of CUDA and NCCL: ranks are lost while their GPU is at work."""

import os
import re

import pytest
from jobs import RUNJOB, run

BUILD = os.path.dirname(os.path.dirname(RUNJOB))
RANK = os.path.join(BUILD, "bin", "elastic_gpu_rank")
STAND_INS = os.path.join(BUILD, "lib", "gpu_stand_in")

pytestmark = pytest.mark.skipif(not os.access(RANK, os.X_OK), reason="elastic_gpu_rank is not built")


@pytest.mark.parametrize("delay", ["100", "30000"])
@pytest.mark.parametrize("victim", [0, 2])
def test_ranks_go_on_when_one_is_killed_within_an_operation_and_get_its_replacement_over_the_stand_ins(victim, delay):
    stand_ins = ("-x", f"LD_LIBRARY_PATH={STAND_INS}", "-x", f"RUNJOB_STAND_IN_DELAY_US={delay}")
    job = run("-np", "3", "--min-np", "2", *stand_ins, RANK, "3", "12", str(victim))
    assert job.returncode == 0, job.stderr
    lines = re.findall(r"(generation \d+|end): rank (\d) of (\d), process (\d+): (\d+) steps", job.stdout)
    firsts = {pid for what, _, _, pid, _ in lines if what == "generation 0"}
    lasts = {pid for what, _, _, pid, _ in lines if what == "end"}
    assert len(firsts) == 3 and len(lasts) == 3 and len(firsts & lasts) == 2, "two processes live from the begin to the end"
    assert {(size, steps) for what, _, size, _, steps in lines if what == "end"} == {("3", lines[-1][4])}
    second = [int(steps) for what, *_, steps in lines if what == "generation 1"]
    assert second == [3] * len(second) and len(second) in (2, 3), "they go on from the last commit"
    assert f"rank {victim} on localhost was killed by signal 9 (SIGKILL)" in job.stderr
