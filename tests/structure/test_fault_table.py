"""The table of faults in docs/faults.md: each of its rows has a test, and each of these tests exists."""

import re
import runpy

import pytest
from source_tree import ROOT, read

TABLE = runpy.run_path(str(ROOT / "tests" / "python" / "faults" / "table.py"))
TESTS = TABLE["ROWS"]
NUMBERS = [int(number) for number in re.findall(r"^\| (\d+) \|", read("docs/faults.md").partition("\n## ")[0], re.MULTILINE)]


def test_the_page_has_each_row_once():
    assert NUMBERS == list(range(1, 61))


def test_each_row_has_a_test_and_no_other_has():
    assert sorted(TESTS) == sorted(NUMBERS)
    assert all(TESTS.values())


@pytest.mark.parametrize("number", sorted(TESTS))
def test_the_tests_of_a_row_exist(number):
    for path, name in TESTS[number]:
        kind = re.compile(r"^def (\w+)", re.MULTILINE) if path.endswith(".py") else re.compile(r'(?:TEST_CASE|SECTION)\("([^"]+)')
        found = kind.findall(read(f"tests/{path}"))
        begins = name.removeprefix("TEST_CASE")
        assert any(each.startswith(begins) for each in found), f"row {number}: tests/{path} has no {name}"
