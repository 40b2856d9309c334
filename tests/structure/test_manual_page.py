"""docs/manual.md has each option that --help shows, with its names, its default and its variables, and no other."""

import re

import option_table
import source_tree

PAGE = source_tree.read("docs/manual.md")
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


def cells(line):
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line.strip()[1:-1])]


def plain(cell):
    """A cell without its links and marks of code."""
    return LINK.sub(r"\1", cell).replace("`", "")


def page_rows():
    """The rows of the page's tables of options, by the long name of the option."""
    tables = re.findall(r"^\| option \| meaning \| default \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    rows = [cells(line) for table in tables for line in table.splitlines()]
    return {re.search(r"--([a-z0-9-]+)", row[0]).group(1): row for row in rows}


ROWS = page_rows()
OPTIONS = {row.name: row for row in option_table.rows()}
OF_JOBS = [row for row in OPTIONS.values() if not row.is_action]


def test_the_tables_have_every_option_of_a_job_and_no_other():
    assert len(OF_JOBS) > 50
    assert sorted(ROWS) == sorted(row.name for row in OF_JOBS)


def test_every_other_option_is_in_the_table_of_what_starts_no_job():
    table = PAGE.partition("## Options that do something else")[2].partition("\n## ")[0]
    assert not [row.name for row in OPTIONS.values() if row.is_action and f"--{row.name}`" not in table]


def test_names_and_values_are_those_of_the_program():
    def spelled(row):
        value = f"[={row.value}]" if row.may_lack_value else f" {row.value}" if row.value else ""
        return [*row.other_names, f"--{row.name}{value}"]

    shown = {row.name: re.findall(r"`(-[^`]*)`", ROWS[row.name][0]) for row in OF_JOBS}
    assert not {row.name: (shown[row.name], spelled(row)) for row in OF_JOBS if shown[row.name] != spelled(row)}


def test_defaults_are_those_of_the_program():
    shown = {row.name: plain(ROWS[row.name][2]) for row in OF_JOBS}
    assert not {row.name: (shown[row.name], row.default) for row in OF_JOBS if shown[row.name] != row.default}


def test_variables_are_those_of_the_program():
    """A row names the variables that do not follow from the option's name."""
    without = re.search(r"([^.]*) have none\.", PAGE).group(1)
    assert [f"`{name}`" in without for name in ("-x", "--env-file", "-mca")] == [True] * 3
    assert [row.name for row in OF_JOBS if not row.variables] == ["export", "env-file", "mca"]
    shown = {row.name: source_tree.names_in(ROWS[row.name][3]) if len(ROWS[row.name]) > 3 else () for row in OF_JOBS}
    others = {row.name: tuple(name for name in row.variables if name != row.own_variable()) for row in OF_JOBS}
    assert shown == others
    assert not [row.name for row in OF_JOBS if row.variables and row.own_variable() not in row.variables]


def test_the_keys_of_horovodrun_are_on_the_page():
    keys = [row.horovodrun_key for row in OPTIONS.values() if row.horovodrun_key]
    assert keys
    assert not [key for key in keys if f"`{key}`" not in PAGE]
