"""Each difference of docs/migration.md has a test that exists in docs/developers/migration-tests.md, or the hardware is not here."""

import re

import pytest
import source_tree

PAGE, TESTS = "docs/migration.md", "docs/developers/migration-tests.md"
NAMED = re.compile(r"`(tests/[^`]+?)::([^`]+)`")
NO_HARDWARE = "the hardware is not here"


def objection(cell):
    """Why the last cell of a row is not enough; None when it is."""
    named = NAMED.findall(cell)
    if not named:
        return None if NO_HARDWARE in cell else "names no test as `tests/FILE::NAME`, and does not say that the hardware is not here"
    missing = [f"{file}::{name}" for file, name in named if not exists(file, name)]
    return f"there is no {', '.join(missing)}" if missing else None


def exists(file, name):
    """Whether `file` has a test, or a case of one, called `name`: a function in Python, the text of a TEST_CASE in C++."""
    if not (source_tree.ROOT / file).is_file():
        return False
    text = source_tree.read(file)
    if file.endswith(".py"):
        return re.search(rf"^def {re.escape(name)}\(", text, re.MULTILINE) is not None
    return f'TEST_CASE("{name}"' in text


def test_every_row_names_its_test():
    rows = list(source_tree.table_rows(source_tree.read(TESTS), "topic"))
    assert len(rows) > 20
    assert not {row[0]: why for row in rows if (why := objection(row[-1]))}
    assert not [row[0] for row in rows if len(row) != 2 or not all(row)], "a row is: topic, test"


def test_every_difference_has_its_row_of_tests():
    differences = list(source_tree.table_rows(source_tree.read(PAGE), "topic"))
    assert [row[0] for row in differences] == [row[0] for row in source_tree.table_rows(source_tree.read(TESTS), "topic")]
    assert not [row[0] for row in differences if len(row) != 3 or not all(row)], "a row is: topic, what is here, why"


@pytest.mark.parametrize(
    "cell, is_enough",
    [
        ("`tests/structure/test_migration_page.py::test_every_row_names_its_test`", True),
        ("`tests/structure/test_migration_page.py::exists`, `tests/base/error_test.cc::no such case`", False),
        ("`tests/structure/test_migration_page.py::test_nothing`", False),
        ("`tests/no_such_file.py::test_nothing`", False),
        ("none: the hardware is not here", True),
        ("none", False),
    ],
)
def test_cells_are_judged(cell, is_enough):
    assert (objection(cell) is None) == is_enough


def test_cases_of_cpp_are_found():
    text = source_tree.read("tests/base/error_test.cc")
    name = re.search(r'TEST_CASE\("([^"]+)"', text).group(1)
    assert objection(f"`tests/base/error_test.cc::{name}`") is None
