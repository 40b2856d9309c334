"""Type hints: mypy has nothing to say about our sources, and tells users of a wrong call. pyproject.toml says how strict it is."""

import subprocess
import sys

import pytest
from ranks import ROOT, environment

CACHE = ROOT / "build" / "mypy"

RIGHT = """
import numpy
import torch

import horovod.torch
import runjob.numpy
import runjob.torch as hvd

hvd.init(process_sets=[hvd.ProcessSet([0, 1])])
reduced: torch.Tensor = hvd.allreduce(torch.ones(3), op=hvd.Sum, compression=hvd.Compression.fp16)
handle: int = hvd.allreduce_async_(reduced, name="a")
hvd.synchronize(handle)
tensors: list[torch.Tensor] = hvd.grouped_allgather([reduced])
same: torch.Tensor = horovod.torch.broadcast_(reduced, root_rank=0)
model = torch.nn.Linear(1, 1)
optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters())
optimizer.synchronize()
with optimizer.skip_synchronize():
    optimizer.step()
hvd.broadcast_optimizer_state(optimizer, root_rank=0)
hvd.assert_same(model, buffers=True, name="model")
horovod.torch.assert_same(list(model.named_parameters()), process_set=hvd.global_process_set)
sampler = hvd.elastic.ElasticSampler([1, 2, 3], shuffle=False)
state = hvd.elastic.TorchState(model, optimizer, sampler=sampler, epoch=0)


@hvd.elastic.run
def train(state: hvd.elastic.TorchState) -> int:
    state.epoch += 1
    state.commit()
    return 1


epochs: int = train(state)
array = runjob.numpy.allreduce(numpy.ones(3), op=runjob.numpy.Max)
array += runjob.numpy.allgather([1, 2]) * runjob.numpy.allreduce(3.0)
array += runjob.numpy.empty_symmetric((2, 3), dtype="float32").sum()
"""


def mypy(*arguments):
    command = [sys.executable, "-m", "mypy", "--cache-dir", str(CACHE), *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True)


def check(folder, code):
    """What mypy says about a user's file, as strictly as of our sources, so that it need not look at PyTorch a second time."""
    path = folder / "user.py"
    path.write_text(code)
    return mypy(str(path)).stdout


def test_our_sources():
    done = mypy()
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("distribution", ["runjob", "horovod"])
def test_types_are_for_users_too(distribution):
    assert (ROOT / "python" / distribution / "py.typed").exists()


def test_a_users_program(tmp_path):
    assert "Success: no issues found" in check(tmp_path, RIGHT)


def test_a_users_mistakes(tmp_path):
    mistakes = {
        "hvd.allreduce(1.0)": "Argument 1",
        "hvd.broadcast(torch.ones(1))": "Missing positional argument",
        'hvd.allreduce(torch.ones(1), op="sum")': 'Argument "op"',
        "hvd.synchronize(torch.ones(1))": "Argument 1",
        "hvd.allgather(torch.ones(1), process_set=[0])": 'Argument "process_set"',
        "hvd.alltoal(torch.ones(1))": "has no attribute",
        "text: str = hvd.rank()": "Incompatible types",
    }
    found = check(tmp_path, "import torch\nimport runjob.torch as hvd\n" + "\n".join(mistakes) + "\n")
    for line, (code, complaint) in enumerate(mistakes.items(), 3):
        assert any(f"user.py:{line}:" in each and complaint in each for each in found.splitlines()), f"{code}\n{found}"
