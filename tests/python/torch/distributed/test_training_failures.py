"""DDP, FSDP2 and a distributed checkpoint of which one rank raises, is killed, exits or hangs: what the other rank gets."""

import os
import signal
import sys
import time
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist
from both_backends import caught
from torch import nn
from torch.nn.parallel import DistributedDataParallel

# FSDP and checkpoints are imported where they are used: each job of these tests has processes of its own.

GROUP_SECONDS = 3
#: The other rank must not wait for the time limit of its group, which is 30 minutes by default, if a rank is lost.
MOST_SECONDS = 20


def step_of(model):
    inputs = torch.randn(4, 8)
    return lambda: model(inputs).sum().backward()


def ddp(folder):
    return step_of(DistributedDataParallel(nn.Linear(8, 4)))


def fsdp2(folder):
    from torch.distributed.fsdp import fully_shard

    return step_of(fully_shard(nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 4))))


def checkpoint(folder):
    import torch.distributed.checkpoint as dcp
    from torch.distributed.fsdp import fully_shard

    numbers = iter(range(10))
    state = fully_shard(nn.Linear(8, 4)).state_dict()
    return lambda: dcp.save(state, checkpoint_id=os.path.join(folder, str(next(numbers))))


def raises():
    raise ValueError("rank 1 has a bad batch")


def is_killed():
    os.kill(os.getpid(), signal.SIGKILL)


def exits():
    sys.exit(0)


def hangs():
    dist.distributed_c10d._get_default_store().wait(["rank 0 has its error"])


def lost(program, end, folder):
    """What rank 0 gets in a step that rank 1 does not reach, and after how many seconds."""
    dist.init_process_group("runjob", timeout=timedelta(seconds=GROUP_SECONDS if end == "hangs" else 1800))
    store = dist.distributed_c10d._get_default_store()
    store.set_timeout(timedelta(minutes=3))
    step = globals()[program](folder)
    step()
    if dist.get_rank() == 1:
        store.set("rank 1 ends", str(time.time()))
        globals()[end]()
        return None
    text = caught(step)
    seconds = time.time() - float(store.get("rank 1 ends"))
    store.set("rank 0 has its error", "")
    return text, seconds


TEXTS = {
    "raises": "rank 1 on localhost failed: ValueError: rank 1 has a bad batch",
    "is_killed": "rank 1 on localhost",
    "exits": "rank 1 on localhost ended its program while",
    "hangs": f"is not done after {GROUP_SECONDS} s",
}
STATUS = {"raises": 1, "is_killed": 128 + signal.SIGKILL, "exits": 0, "hangs": 0}
CASES = [
    pytest.param(program, end, marks=[] if program is ddp else [pytest.mark.thorough], id=f"{program.__name__}-{end}")
    for program in (ddp, fsdp2, checkpoint)
    for end in TEXTS
]


@pytest.mark.parametrize(("program", "end"), CASES)
def test_the_other_rank_gets_the_reason_and_the_host(run_ranks, monkeypatch, tmp_path, program, end):
    monkeypatch.setenv("RUNJOB_CONTINUE_ON_FAILURE", "1")  # rank 0 may return
    job = run_ranks(lost, 2, program.__name__, end, str(tmp_path), status=None)
    text, seconds = job.results[0]
    print(f"{program.__name__}, {end}: {seconds:.3f} s: {text}")
    assert TEXTS[end] in text
    assert seconds < MOST_SECONDS
    assert job.status == STATUS[end], job.stderr
