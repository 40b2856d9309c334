"""benchmarks/training with TensorFlow, with real ranks: it runs. How fast anything is, is not asked here."""

import json
import subprocess
import sys

import pytest

import ranks


def run(tmp_path, model, peers):
    """The report's only case, and what was said."""
    path = tmp_path / f"{model}.json"
    words = ["--models", model, "--peers", peers, "--turns", "1", "--steps", "1", "--settle", "0", "--json", str(path)]
    pythons = ["--tensorflow-python", sys.executable, "--horovod-tensorflow-python", str(tmp_path / "none")]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.training", "--bin", str(ranks.LAUNCHER.parent), *words, *pythons], cwd=ranks.ROOT,
        capture_output=True, text=True, check=False, timeout=ranks.TIMEOUT_SECONDS,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (case,) = json.loads(path.read_text())["cases"]
    return case, done.stderr


@pytest.mark.thorough
def test_ranks_train_in_turns(tmp_path):
    loop, said = run(tmp_path, "tf-loop", "runjob,mwms,horovod")
    assert list(loop["results"]) == ["runjob", "mwms"] and loop["left_out"] == {} and loop["parameters"] == 16_794_634
    assert "left out: horovod:" in said and "--horovod-tensorflow-python" in said
    fit, _ = run(tmp_path, "keras-cnn", "runjob")
    assert list(fit["results"]) == ["runjob"] and fit["parameters"] == 591_274
