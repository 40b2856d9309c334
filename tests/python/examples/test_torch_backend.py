"""Programs of torch.distributed, unchanged, over runjob: examples/pytorch_digits_ddp.py and pytorch_digits_fsdp.py, and the scripts of
docs/pytorch-libraries.md. That the data go over runjob is seen in the trace, which Gloo does not write.
"""

import importlib.util
import json
import os
import re
import subprocess
import sys

import pytest
import torch

import entry_points
import ranks
from docs import pages

VERSION = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
pytestmark = pytest.mark.skipif(VERSION < (2, 14), reason="PyTorch 2.14 is the first that looks for backends")
EXAMPLES = ranks.ROOT / "examples"
PAGE = ranks.ROOT / "docs" / "pytorch-libraries.md"

#: Script of the page: the library that it needs, and the most that its last loss may be with two ranks.
SCRIPTS = {
    "train_fabric.py": ("lightning_fabric", 0.01),
    "train_accelerate.py": ("accelerate", 0.01),
    "train_lightning.py": ("pytorch_lightning", 0.02),
    "train_trainer.py": ("transformers", 7),  # the mean of all steps
    "train_fsdp.py": ("torch", 0.3),
}


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    return entry_points.install(tmp_path_factory.mktemp("installed"))


@pytest.fixture
def run(installed, tmp_path):
    """run(np, program, *arguments): what the ranks print. Fails unless the trace has collectives of runjob."""

    def started(np, *program):
        trace = tmp_path / "trace.json"
        path = os.pathsep.join([str(ranks.ROOT / "python"), str(installed)])
        environment = {**ranks.environment(), "PYTHONPATH": path}
        options = ["-np", str(np), "--torch-backend", "runjob", "--timeline-filename", str(trace)]
        command = [str(ranks.LAUNCHER), *options, sys.executable, *map(str, program)]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=ranks.TIMEOUT_SECONDS)
        assert done.returncode == 0, done.stdout + done.stderr
        names = {event.get("name") for event in json.loads(trace.read_text())}
        assert names & {"ALLREDUCE", "ALLGATHER", "REDUCESCATTER"}, f"no collective of runjob in the trace: {names}"
        return done.stdout

    return started


def accuracies(text):
    return [float(found) for found in re.findall(r"test accuracy ([\d.]+)", text)]


def test_ddp_learns_the_digits(run):
    assert accuracies(run(2, EXAMPLES / "pytorch_digits_ddp.py"))[-1] >= 0.97


def test_fsdp_learns_the_digits_and_continues_from_its_checkpoint_with_more_ranks(run, tmp_path):
    words = (EXAMPLES / "pytorch_digits_fsdp.py", "--checkpoint", tmp_path / "checkpoint", "--epochs")
    first = run(2, *words, 4)
    assert "2 ranks, beginning after epoch 0" in first
    then = run(3, *words, 12)
    assert "3 ranks, beginning after epoch 4" in then
    assert accuracies(then)[0] == accuracies(first)[-1]
    assert accuracies(then)[-1] >= 0.95


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_of_the_page_learns(run, tmp_path, name):
    library, most = SCRIPTS[name]
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed; packaging/packages.sh has the names of the packages")
    (tmp_path / name).write_text(pages.read(PAGE).files[name])
    losses = re.findall(r"loss ([\d.]+)", run(2, name))
    assert losses and float(losses[-1]) <= most


def test_every_script_of_the_page_is_run():
    assert set(SCRIPTS) == set(pages.read(PAGE).files)
