"""packaging/failures.py over the results of real runners."""

import pathlib
import subprocess
import sys

FAILURES = pathlib.Path(__file__).resolve().parents[2] / "packaging/failures.py"
TESTS = """import pytest

@pytest.fixture
def broken():
    raise OSError("no such host")

def test_good(): pass
def test_sum():
    print("noise")
    assert 1 + 1 == 3, "the sum"
def test_host(broken): pass
"""
PROJECT = """cmake_minimum_required(VERSION 3.25)
project(tests LANGUAGES NONE)
enable_testing()
add_test(NAME good COMMAND true)
add_test(NAME reads COMMAND sh -c "seq 20; echo '==1==ERROR: AddressSanitizer: heap-buffer-overflow'; seq 20; exit 1")
add_test(NAME catch COMMAND printf "%s\\n" "a_test.cc:7: FAILED:" "  CHECK( each.ok() )" "with message:" "  rank 1 has left" ==================== "1 failed")
set_tests_properties(catch PROPERTIES FAIL_REGULAR_EXPRESSION FAILED)
add_test(NAME ends COMMAND sh -c "seq 20; exit 1")
"""


def failures(*arguments):
    return subprocess.run([sys.executable, FAILURES, *map(str, arguments)], capture_output=True, text=True, check=True).stdout


def test_failures_of_pytest(tmp_path):
    (tmp_path / "test_it.py").write_text(TESTS)
    results = tmp_path / "results.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml", str(results), "test_it.py"]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).returncode == 1
    assert failures("--names", results) == "test_it: test_sum\ntest_it: test_host\n"
    assert "AssertionError: the sum" in failures(results)
    assert "OSError: no such host" in failures(results)
    assert "noise" not in failures(results)


def test_failures_of_ctest(tmp_path):
    (tmp_path / "CMakeLists.txt").write_text(PROJECT)
    subprocess.run(["cmake", "-S", tmp_path, "-B", tmp_path], capture_output=True, check=True)
    results = tmp_path / "results.xml"
    command = ["ctest", "--output-on-failure", "--output-junit", str(results)]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).returncode == 8
    assert failures("--names", results) == "reads\ncatch\nends\n"
    last = "".join(f"      {number}\n" for number in range(9, 21))
    catch = "".join(f"      {line}\n" for line in ("a_test.cc:7: FAILED:", "  CHECK( each.ok() )", "with message:", "  rank 1 has left"))
    assert failures(results) == f"   reads\n      ==1==ERROR: AddressSanitizer: heap-buffer-overflow\n   catch\n{catch}   ends\n{last}"
