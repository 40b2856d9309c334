"""docs/developers/security-tests.md: each row of its tables of promises names a test that exists, and each fuzz target has a row."""

import re

import pytest
import source_tree
from test_migration_page import objection

PAGE = "docs/developers/security-tests.md"


@pytest.mark.parametrize("table, fewest", [("connection", 10), ("promise", 12)])
def test_every_row_names_its_test(table, fewest):
    rows = list(source_tree.table_rows(source_tree.read(PAGE), table))
    assert len(rows) >= fewest
    assert not {row[0]: why for row in rows if (why := objection(row[-1]))}


def test_everybody_who_is_trusted_has_a_limit_with_its_test_or_no_limit():
    rows = list(source_tree.table_rows(source_tree.read(PAGE), "who"))
    assert len(rows) >= 7
    assert not {row[0]: why for row in rows if row[-1] != "no limit" and (why := objection(row[-1]))}
    assert {row[0] for row in rows if row[-1] != "no limit"} >= {"other users of a host", "others on the network"}


def test_the_table_of_fuzz_targets_has_all_and_no_others():
    rows = source_tree.table_rows(source_tree.read(PAGE), "what arrives")
    named = [name for row in rows for name in re.findall(r"`(\w+)`", row[-1])]
    there = [path.stem.removesuffix("_fuzz") for path in source_tree.sources(".cc") if path.stem.endswith("_fuzz")]
    assert sorted(named) == sorted(there)
