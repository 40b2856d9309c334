"""benchmarks/launch over the hosts of the testbed: it runs, and what it counts is right. How fast anything is, is not asked here."""

import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIMIT_SECONDS = 300


def run(*arguments):
    return subprocess.run(
        [sys.executable, ROOT / "benchmarks/launch", *map(str, arguments)], capture_output=True, text=True, check=False,
        timeout=LIMIT_SECONDS,
    )  # fmt: skip


def test_hosts_are_measured(tmp_path):
    path = tmp_path / "launch.json"
    done = run("--only", "hosts", "--peers", "ssh", "--hosts", 1, 3, "--host-rounds", 2, "--json", path)
    assert done.returncode == 0, done.stderr
    report = json.loads(path.read_text())
    cells = {size: row["ssh"] for size, row in report["hosts"].items()}
    assert {size: (cell["runs"], cell["connections"]) for size, cell in cells.items()} == {"1": (2, 1), "3": (2, 3)}
    for size, cell in cells.items():
        assert 0 < cell["lowest"] <= cell["median"] <= cell["highest"]
        assert cell["cpu_seconds"] > 0 and cell["pss_kib"] > 0
        assert cell["processes"] == 1 + int(size), "a shell, and one ssh for each host"
    assert f"| 3 | {cells['3']['median'] * 1000:.1f} |" in done.stdout.splitlines()
    assert "| ssh |" in done.stdout and " | 4 | 3 |" in done.stdout


def test_a_peer_that_does_not_work_is_left_out_with_its_own_words(tmp_path):
    broken = tmp_path / "runjob"
    broken.write_text("#!/bin/sh\necho broken on purpose >&2\nexit 9\n")
    for path in (tmp_path, broken):
        path.chmod(0o755)
    path = tmp_path / "launch.json"
    done = run("--only", "hosts", "--peers", "runjob", "ssh", "--runjob", broken, "--hosts", 1, "--host-rounds", 1, "--json", path)
    assert done.returncode == 0, done.stderr
    assert "left out: runjob on 1 hosts: status 9: broken on purpose" in done.stderr
    report = json.loads(path.read_text())
    assert list(report["hosts"]["1"]) == ["ssh"]
    assert "runjob on 1 hosts: status 9: broken on purpose" in report["left_out_with_hosts"]
