"""benchmarks/elastic: its jobs lose ranks, and what it prints is what it has measured. How fast anything is, is not asked here."""

import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIMIT_SECONDS = 300


def run(*arguments):
    return subprocess.run(
        [sys.executable, ROOT / "benchmarks/elastic", *map(str, arguments)], capture_output=True, text=True, check=False, timeout=LIMIT_SECONDS
    )


def test_losses_and_simulated_hosts_are_measured(tmp_path):
    path = tmp_path / "elastic.json"
    done = run("--only", "losses", "many", "--rounds", 1, "--cases", "4 ranks and", "--simulated-hosts", 10, "--json", path)
    assert done.returncode == 0, done.stderr
    report = json.loads(path.read_text())
    stopped = report["losses"]["rows"]["4 ranks and a spare, C++"]["stopped"]
    assert report["losses"]["failed"] == {} and len(stopped) == 3
    assert 0 < min(stopped)
    assert "| 4 ranks and a spare, C++ | 3 | " in done.stdout
    assert len(report["many"]["10"]) == 5 and 0 < min(report["many"]["10"])
    assert "| 10 | " in done.stdout


def test_a_job_that_ends_too_early_is_told_with_its_output(tmp_path):
    sys.path.insert(0, str(ROOT / "benchmarks/elastic"))
    from losses import Case, alternate

    case = Case("broken", "false", ["sh", "-c", "echo broken on purpose; exit 9"], 2, 1)
    results, failed = alternate([case], 1, lambda text: None)
    assert results == {}
    assert "broken on purpose" in failed["broken"] and "ended before it had" in failed["broken"]
