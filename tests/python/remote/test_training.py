"""Real training over several hosts: our example, and a plain torch.distributed script that knows nothing of us."""

import pathlib
import re
import sys

import pytest
from remote_jobs import ROOT, run
from testbed import Testbed

pytest.importorskip("torch")

VARIABLES = {"PYTHONPATH": str(ROOT / "python"), "OMP_NUM_THREADS": "1"}

IDENTICAL_WEIGHTS = """
import hashlib, sys
sys.argv = ["pytorch_digits.py", "--batch-size", "8", "--learning-rate", "0.0125"]
sys.path.insert(0, {examples!r})
import torch
models = []
wrapped = torch.nn.Module.__init__
def remember(self, *arguments, **options):
    wrapped(self, *arguments, **options)
    models.append(self)
torch.nn.Module.__init__ = remember
import runpy
runpy.run_path({examples!r} + "/pytorch_digits.py", run_name="__main__")
largest = max(models, key=lambda model: sum(p.numel() for p in model.parameters()))
digest = hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in largest.parameters()))
print("weights", digest.hexdigest(), flush=True)
"""

PLAIN_TORCH = """
import os, torch, torch.distributed as dist
dist.init_process_group("gloo")
x = torch.full((1000,), float(dist.get_rank() + 1))
dist.all_reduce(x)
print("sum", x[0].item(), dist.get_world_size(), os.environ["LOCAL_RANK"], flush=True)
dist.barrier()
dist.destroy_process_group()
os._exit(0)  # leaves out Python's end, in which PyTorch may abort: docs/ddp.md
"""


@pytest.fixture(scope="module")
def bed():
    with Testbed(hosts=4, visible=[sys.prefix], decoys=True) as bed:
        yield bed


def values(output, word):
    return re.findall(rf"^\[\d+\]<stdout>:{word} (.*)$", output, re.MULTILINE)


def test_the_example_learns_and_every_rank_ends_with_the_same_weights(bed):
    code = IDENTICAL_WEIGHTS.format(examples=str(ROOT / "examples"))
    done = run(bed, "-H", "s1:2,s2:2,s3:2,s4:2", sys.executable, "-c", code, variables=VARIABLES)
    assert done.returncode == 0, done.stderr
    digests = values(done.stdout, "weights")
    assert len(digests) == 8 and len(set(digests)) == 1
    (accuracy,) = re.findall(r"^\[0\]<stdout>:test accuracy ([\d.]+) after", done.stdout, re.MULTILINE)
    assert float(accuracy) >= 0.97


def test_a_plain_torch_distributed_script(bed, tmp_path):
    script = pathlib.Path("/tmp/plain.py")
    for host in bed.hosts[:2]:
        host.write(script, PLAIN_TORCH)
    done = run(bed, "-H", "s1:2,s2:2", sys.executable, script, variables=VARIABLES)
    assert done.returncode == 0, done.stderr
    assert sorted(values(done.stdout, "sum")) == ["10.0 4 0", "10.0 4 0", "10.0 4 1", "10.0 4 1"]
