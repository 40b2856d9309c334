"""benchmarks/training with TensorFlow, with real ranks: it runs. How fast anything is, is not asked here."""

import json
import subprocess
import sys

import ranks


def test_all_of_two_ranks_train_in_turns(tmp_path):
    path = tmp_path / "training.json"
    words = ["--peers", "runjob,mwms,horovod", "--turns", "1", "--steps", "1", "--settle", "0", "--json", str(path)]
    pythons = ["--tensorflow-python", sys.executable, "--horovod-tensorflow-python", str(tmp_path / "none")]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.training", "--models", "keras-cnn,tf-loop", "--bin", str(ranks.LAUNCHER.parent), *words, *pythons],
        cwd=ranks.ROOT, capture_output=True, text=True, check=False, timeout=ranks.TIMEOUT_SECONDS,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    fit, loop = json.loads(path.read_text())["cases"]
    assert (fit["model"], fit["parameters"], loop["model"], loop["parameters"]) == ("keras-cnn", 591_274, "tf-loop", 16_794_634)
    assert list(loop["results"]) == ["runjob", "mwms"] and loop["left_out"] == {}
    assert "runjob" in fit["results"] and set(fit["left_out"]) <= {"mwms"}  # which Keras 3 does not take
    assert "left out: horovod:" in done.stderr and "--horovod-tensorflow-python" in done.stderr
