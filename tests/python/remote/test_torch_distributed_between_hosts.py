"""Unmodified programs of torch.distributed on two hosts, over the backend runjob."""

import re
import sys

import pytest
from ranks import ROOT
from remote_jobs import run
from testbed import Testbed

pytest.importorskip("torch")
pytest.importorskip("torch.distributed")  # tests/python/torch is a package of that name for Python
sys.path.append(str(ROOT / "tests" / "python" / "torch" / "distributed"))
import entry_points  # noqa: E402
import installed_ranks  # noqa: E402

TRAIN = """
import os, signal, sys, time
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
store = dist.distributed_c10d._get_default_store()
rank = dist.get_rank()
torch.manual_seed(0)
model = DistributedDataParallel(torch.nn.Linear(4, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    if step == 2 and rank == 1 and sys.argv[1] != "works":
        store.set("the end of rank 1", str(time.time()))
        if sys.argv[1] == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        raise ValueError("rank 1 has a bad batch")
    optimizer.zero_grad()
    try:
        model(torch.full((3, 4), rank + 1.0)).sum().backward()
    except Exception as error:
        seconds = time.time() - float(store.get("the end of rank 1"))
        print(f"after {seconds:.2f} s: {type(error).__name__}: {error}".splitlines()[0], flush=True)
        sys.exit(0)
    optimizer.step()
print(type(dist.group.WORLD).__name__, model.module.weight.sum().item(), flush=True)
dist.destroy_process_group()
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    return entry_points.install(tmp_path_factory.mktemp("packages") / "installed")


@pytest.fixture(scope="module")
def bed(installed):
    with Testbed(hosts=2, visible=[sys.prefix, str(installed)]) as bed:
        for host in bed.hosts:
            host.write("/tmp/train.py", TRAIN)
        yield bed


def train(bed, installed, end, *options):
    variables = {"PYTHONPATH": installed_ranks.path_of(installed), "OMP_NUM_THREADS": "1"}
    command = ["--torch-backend", "runjob", *options, sys.executable, "/tmp/train.py", end]
    return run(bed, "-H", "s1:1,s2:1", "--continue-on-failure", *command, variables=variables)


def test_ddp_on_two_hosts(bed, installed):
    done = train(bed, installed, "works", "--verbose")
    assert done.returncode == 0, done.stderr
    lines = re.findall(r"^\[\d\]<stdout>:(.*)$", done.stdout, re.MULTILINE)
    assert len(lines) == 2 and len(set(lines)) == 1 and lines[0].startswith("RunjobProcessGroup ")
    assert re.search(r"^\[0\]<stderr>:runjob: torch\.distributed runs over runjob, with 2 ranks$", done.stderr, re.MULTILINE)


@pytest.mark.parametrize(
    ("end", "text"),
    [
        ("raises", "rank 1 on s2 failed: ValueError: rank 1 has a bad batch"),
        pytest.param("killed", "rank 1 on s2", marks=pytest.mark.thorough),
    ],
)
def test_the_other_host_gets_the_reason(bed, installed, end, text):
    done = train(bed, installed, end)
    assert done.returncode == (1 if end == "raises" else 137), done.stderr
    (line,) = re.findall(r"^\[0\]<stdout>:(.*)$", done.stdout, re.MULTILINE)
    print(line)
    assert text in line
    assert float(re.match(r"after ([\d.]+) s", line).group(1)) < 20  # not the time limit of the group, half an hour
