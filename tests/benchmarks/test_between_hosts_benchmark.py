"""benchmarks/between_hosts: every part of it measures, and what it prints is what it has measured. How fast anything is, is not asked here."""

import json
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIMIT_SECONDS = 300


def run(*arguments):
    command = [sys.executable, "-m", "benchmarks.between_hosts", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=LIMIT_SECONDS)


def test_operations_are_measured_with_free_and_with_pinned_cores(tmp_path, root):
    path = tmp_path / "between_hosts.json"
    options = ["--operations", "allreduce,barrier", "--bytes", "64,64K", "--cores", "free,pinned", "--rounds", 1, "--budget-ms", 5]
    done = run("--what", "peers", "--peers", "none", "--hosts", 2, *options, "--json", path)
    assert done.returncode == 0, done.stderr
    rows = json.loads(path.read_text())
    assert [(row["cores"], row["operation"], row["bytes"]) for row in rows] == [
        (cores, operation, nbytes) for cores in ("free", "pinned") for operation in ("allreduce", "barrier") for nbytes in (64, 65536)
    ]
    for row in rows:
        expected = {"runjob", "bare", "bare sum"} if row["operation"] == "allreduce" else {"runjob"}
        assert set(row["us"]) == expected and min(row["us"].values()) > 0
        assert f"runjob {row['us']['runjob']:.1f} (" in done.stdout


def test_whole_jobs_are_measured(root):
    done = run("--what", "engine", "--hosts", 2, "--rounds", 1)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("2 hosts, ") == 4 and done.stdout.count(" us\n") == 4


def test_the_backend_is_measured_beside_gloo(root):
    done = run("--what", "both", "--hosts", 2, "--rounds", 1, "--mib", 1)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(" Gloo ") == 3 and "of the wire's bound" in done.stdout


@pytest.mark.parametrize(
    "option, value, text",
    [
        ("--bytes", "1Q", "'1Q' is no size; 4, 64K, 1M and 1G are"),
        ("--cores", "loose", "'loose' is none of free, pinned"),
        ("--operations", "gather", "'gather' is none of allreduce, "),
        ("--peers", "lam", "--peers: no lam here; there are "),
    ],
)
def test_a_wrong_word_is_named_before_anything_runs(option, value, text):
    done = run("--what", "peers", option, value)
    assert done.returncode != 0 and text in done.stderr and "Traceback" not in done.stderr
