"""docs/security.md: each row of its tables of promises names a test that exists."""

import pytest
import source_tree
from test_migration_page import objection

PAGE = "docs/security.md"


@pytest.mark.parametrize("table, fewest", [("connection", 10), ("promise", 12)])
def test_every_row_names_its_test(table, fewest):
    rows = list(source_tree.table_rows(source_tree.read(PAGE), table))
    assert len(rows) >= fewest
    assert not {row[0]: why for row in rows if (why := objection(row[-1]))}
