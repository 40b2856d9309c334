"""benchmarks/training with real ranks: it runs, and says what did not. How fast anything is, is not asked here."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("RUNJOB_BIN", ROOT / "build/release/bin/runjob")).parent
LIMIT_SECONDS = 300


def run(*arguments, module=True):
    how = ["-m", "benchmarks.training"] if module else ["benchmarks/training"]
    return subprocess.run(
        [sys.executable, *how, "--python", sys.executable, *map(str, arguments)], cwd=ROOT, capture_output=True, text=True,
        check=False, timeout=LIMIT_SECONDS,
    )  # fmt: skip


@pytest.mark.thorough
def test_all_of_two_ranks_train_in_turns(tmp_path):
    path = tmp_path / "training.json"
    done = run(
        "--models", "mlp", "--peers", "runjob,alone,paced,ddp,ddp-runjob,fsdp,fsdp-runjob,horovod", "--turns", 2, "--steps", 1, "--settle", 0, "--bin", BIN,
        "--horovod-python", tmp_path / "none", "--json", path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    report = json.loads(path.read_text())
    (case,) = report["cases"]
    assert (case["model"], case["np"], case["batch"], case["parameters"], case["left_out"]) == ("mlp", 2, 32, 16_794_634, {})
    assert list(case["results"]) == list(case["memory"]) == ["runjob", "alone", "paced", "ddp-runjob", "ddp", "fsdp-runjob", "fsdp"]
    assert list(case["pairs"]) == ["ddp-runjob / ddp", "fsdp-runjob / fsdp"]
    for name, found in case["results"].items():
        assert len(found["turns"]) == 2 and found["samples_per_second"] > 0
        assert ("ratio" in found) == (name != "runjob")
    assert "left out: horovod:" in done.stderr
    assert "| mlp, np 2 |" in done.stdout


def test_a_library_that_fails_is_left_out_with_its_words(tmp_path):
    (tmp_path / "runjob").write_text("#!/bin/sh\necho error: broken on purpose >&2\nexit 9\n")
    (tmp_path / "runjob").chmod(0o755)
    path = tmp_path / "report.json"
    done = run("--models", "mlp", "--peers", "runjob", "--timeout", 5, "--bin", tmp_path, "--json", path)
    assert done.returncode == 1
    assert "left out: runjob, mlp: not all ranks began: error: broken on purpose" in done.stderr
    assert "error: runjob failed at mlp, np 2" in done.stderr
    assert json.loads(path.read_text())["cases"][0]["results"] == {}


def test_what_is_missing_is_named(tmp_path):
    done = run("--bin", tmp_path, module=False)
    assert done.returncode == 1
    assert "error: no runjob in" in done.stderr and "cmake --build --preset release --target" in done.stderr
    (tmp_path / "runjob").touch()
    done = run("--bin", tmp_path, "--python", tmp_path / "no-python")
    assert done.returncode == 1
    assert "no-python has no torch: name one that has with --python" in done.stderr
    done = run("--bin", tmp_path, "--models", "tf-loop", "--tensorflow-python", tmp_path / "no-python")
    assert done.returncode == 1
    assert "no-python has no tensorflow: name one that has with --tensorflow-python" in done.stderr
