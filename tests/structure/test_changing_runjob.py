"""The part "What headers promise" of docs/changing-runjob.md: each folder of headers has a section, and each header lies in its folder."""

import collections
import re

import pytest
import source_tree

PART = "## What headers promise\n"
LEAST_HEADERS = 3  # of a section, unless its folder has fewer
QUESTIONS = 3  # about each header


def sections(markdown):
    """The sections of the part: (folder, its rows as cells)."""
    part = markdown.partition(PART)[2].partition("\n## ")[0]
    for text in re.split(r"^### ", part, flags=re.MULTILINE)[1:]:
        folder, _, table = text.partition("\n")
        yield folder, list(source_tree.table_rows(table, "header"))


def questions(rows):
    """The headers of a section's rows, and how many questions with an answer follow each."""
    counts = collections.Counter()
    header = None
    for name, question, answer in rows:
        header = name.strip("`") or header
        counts[header] += bool(question and answer)
    return counts


def page():
    found = dict(sections(source_tree.read("docs/changing-runjob.md")))
    assert found
    return {folder: questions(rows) for folder, rows in found.items()}


def headers():
    """The product's headers, by folder."""
    found = collections.defaultdict(set)
    for path in source_tree.sources(".hpp", ".h", folders=source_tree.OWN_FOLDERS):
        found[str(path.parent)].add(path.name)
    assert len(found) > 50
    return found


def test_no_folder_has_two_sections():
    folders = [folder for folder, _ in sections(source_tree.read("docs/changing-runjob.md"))]
    assert not [folder for folder, count in collections.Counter(folders).items() if count > 1]


def test_every_header_lies_in_the_folder_of_its_section():
    in_tree = headers()
    missing = [f"{folder}/{name}" for folder, named in page().items() for name in named if name not in in_tree[folder]]
    assert not missing


def test_every_folder_of_headers_has_a_section():
    named = page()
    few = {
        folder: f"{len(named.get(folder, ()))} of {len(names)} headers"
        for folder, names in headers().items()
        if len(named.get(folder, ())) < min(LEAST_HEADERS, len(names))
    }
    assert not few


def test_every_header_has_its_questions():
    wrong = [f"{folder}/{name}: {count}" for folder, named in page().items() for name, count in named.items() if count != QUESTIONS]
    assert not wrong


@pytest.mark.parametrize(
    "rows, expected",
    [
        ("| `a.hpp` | Q | A |\n| | Q | A |\n| `b.hpp` | Q | A |\n", {"a.hpp": 2, "b.hpp": 1}),
        ("| `a.hpp` | Q | |\n", {"a.hpp": 0}),
    ],
)
def test_sections_are_found(rows, expected):
    table = "| header | question | answer |\n|---|---|---|\n" + rows
    markdown = f"# Title\n\n### no\n\n{PART}\nText.\n\n### base/files\n\n{table}\n## Next\n\n### no\n"
    assert [(folder, dict(questions(found))) for folder, found in sections(markdown)] == [("base/files", expected)]
