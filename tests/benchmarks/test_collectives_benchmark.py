"""benchmarks/collectives with real ranks: it runs, and what it counts is right. How fast anything is, is not asked here."""

import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("RUNJOB_BIN", ROOT / "build/release/bin/runjob")).parent
LIMIT_SECONDS = 300


def run(*arguments, module=True):
    how = ["-m", "benchmarks.collectives"] if module else ["benchmarks/collectives"]
    return subprocess.run(
        [sys.executable, *how, *map(str, arguments)], cwd=ROOT, capture_output=True, text=True, check=False,
        timeout=LIMIT_SECONDS,
    )  # fmt: skip


def test_two_ranks_are_measured(tmp_path):
    path = tmp_path / "collectives.json"
    done = run(
        "--np", 2, "--sizes", "4,1K", "--dtypes", "bfloat16", "--modes", "blocking,asynchronous,many", "--peers", "none",
        "--rounds", 2, "--budget-ms", 1, "--bin", BIN, "--json", path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    report = json.loads(path.read_text())
    assert report["versions"]["runjob"].startswith("runjob ")
    measured = {(case["op"], case["dtype"], case["mode"]): case for case in report["cases"]}
    assert len(measured) == 5 * 3 + 1
    for (operation, _, mode), case in measured.items():
        sizes = [0] if operation == "barrier" else [4096] if mode == "many" else [4, 1024]
        series = {} if operation == "barrier" else {"t_copy", "t_scale"}
        if operation in ("allreduce", "allgather", "broadcast", "barrier"):
            series = {"runjob", *series}
        if "runjob" in case["left_out"]:
            assert "runjob.hpp has no " + operation in case["left_out"]["runjob"]
        assert series <= set(case["results"])
        for row in case["results"].values():
            assert list(row) == [str(nbytes) for nbytes in sizes]
            for cell in row.values():
                assert 0 < cell["lowest_us"] <= cell["median_us"] <= cell["highest_us"]
                assert len(cell["turns"]) == 2 and cell["samples"] >= 10
    assert "### allreduce, bfloat16, 1000 x 4 KiB in flight, np 2: us, medians" in done.stdout


def test_another_build_is_measured_beside_this_one(tmp_path):
    path = tmp_path / "collectives.json"
    done = run(
        "--ops", "allreduce", "--sizes", "4", "--peers", "none", "--rounds", 2, "--budget-ms", 1, "--bin", BIN, "--before", BIN, "--json", path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    case = json.loads(path.read_text())["cases"][0]
    assert len(case["results"]["runjob-before"]["4"]["turns"]) == 2
    assert case["ratios"]["runjob / runjob-before"]["4"] > 0


def test_missing_programs_are_named_with_the_way_to_build_them(tmp_path):
    for arguments in (("--bin", tmp_path), ("--bin", BIN, "--before", tmp_path)):
        done = run(*arguments, module=False)
        assert done.returncode == 1
        assert f"error: no runjob and no collectives_benchmark and no collectives_limits in {tmp_path}" in done.stderr
        assert "cmake --build --preset release --target" in done.stderr


def test_a_runjob_that_fails_ends_the_benchmark_with_its_words(tmp_path):
    for name in ("runjob", "collectives_benchmark", "collectives_limits"):
        (tmp_path / name).write_text("#!/bin/sh\necho error: broken on purpose >&2\nexit 9\n")
        (tmp_path / name).chmod(0o755)
    done = run("--bin", tmp_path, "--ops", "barrier", "--peers", "none", "--json", tmp_path / "report.json")
    assert done.returncode == 1
    assert "left out: runjob, barrier, blocking, np 2: status 9: error: broken on purpose" in done.stderr
    assert "runjob failed at barrier, blocking, np 2" in done.stderr
