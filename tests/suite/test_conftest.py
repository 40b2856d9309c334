"""tests/conftest.py: what it makes of a test without root, and of one that has run out of time."""

import pathlib
import sys

import pytest

pytest_plugins = ["pytester"]
TESTS = pathlib.Path(__file__).parents[1]
CODE = """
import subprocess, sys
from testbed import NeedsRoot, eventually

def test_hosts():
    raise NeedsRoot("hosts need root")

def test_program():
    subprocess.run([sys.executable, "-c", "import time; time.sleep(60)"], timeout=0.1)

def test_condition():
    eventually(lambda: False, "never true", limit=0.1)

def test_value():
    assert 1 == 2
"""


@pytest.fixture
def results(pytester, monkeypatch):
    pytester.makeconftest((TESTS / "conftest.py").read_text())
    pytester.makepyfile(CODE)
    monkeypatch.setenv("PYTHONPATH", str(TESTS))
    done = pytester.run(sys.executable, "-m", "pytest", "-rs", "-p", "no:cacheprovider", "-p", "no:xdist")
    done.assert_outcomes(failed=3, skipped=1)
    return done.stdout.str()


def test_a_test_that_needs_root_is_skipped_and_says_so(results):
    assert "SKIPPED [1] test_a_test_that_needs_root_is_skipped_and_says_so.py: hosts need root" in results


def test_a_failure_for_lack_of_time_says_so(results):
    program, condition, value = (results.partition(f"_ test_{name} _")[2].partition("\n___")[0] for name in ("program", "condition", "value"))
    for text in (program, condition):
        assert "the program hangs, or the machine was too slow" in text
    assert "too slow" not in value
