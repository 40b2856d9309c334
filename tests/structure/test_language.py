"""What can be counted of the plain English that docs/changing-runjob.md asks for: columns, and comments without a subject."""

import re

import pytest
import source_tree

MOST_COLUMNS = 120
# The folders whose comments are in plain English.
DONE = ("base/", "bindings/", "cli/", "hostfile/", "launcher/", "rendezvous/", "runtime/", "sealed/")
BARE = re.compile(r"(?:Of|What|Whether)\b")
SAYING = re.compile(r"\b(?:say|says|said|saying|hear|hears|heard|hearing|tell|tells|told|telling)\b", re.IGNORECASE)
QUOTED = re.compile(r'"[^"]*"|`[^`]*`')
COMMENT = re.compile(r"^\s*(?://[/!]?<?|\*)\s?(.*)$")
TRAILING = re.compile(r"[;{},)]\s*//[/!]?<?\s(.*)$")


def files():
    found = source_tree.sources(".cc", ".hpp", ".h", folders=source_tree.OWN_FOLDERS)
    return [path for path in found if str(path).startswith(DONE)]


def comments(text):
    """The comment paragraphs and trailing comments of C++, each as one line."""
    paragraph, found = [], []
    for line in [*text.splitlines(), ""]:
        whole = COMMENT.match(line)
        if whole and whole.group(1).strip():
            paragraph.append(whole.group(1).strip())
            continue
        if paragraph:
            found.append(" ".join(paragraph))
            paragraph = []
        if trailing := TRAILING.search(line):
            found.append(trailing.group(1).strip())
    return found


def all_comments():
    found = [(str(path), comment) for path in files() for comment in comments(source_tree.read(path))]
    assert found
    return found


def test_comments_have_a_subject():
    bare = [one for one in all_comments() if BARE.match(one[1])]
    assert len(bare) < 0.02 * len(all_comments()), "\n".join(map(": ".join, bare))


def test_comments_use_the_terms_of_the_field():
    """Ranks send, announce, receive, report and notify; they do not say, hear or tell."""
    saying = [one for one in all_comments() if SAYING.search(QUOTED.sub("", one[1]))]
    assert len(saying) < 0.005 * len(all_comments()), "\n".join(map(": ".join, saying))


def too_wide(lines):
    return [f"{number}: {len(line)}" for number, line in lines if len(line) > MOST_COLUMNS]


def test_comments_fit_the_page():
    wide = {}
    for path in files():
        lines = enumerate(source_tree.read(path).splitlines(), 1)
        if found := too_wide((number, line) for number, line in lines if "//" in line or COMMENT.match(line)):
            wide[str(path)] = found
    assert not wide


def prose(text):
    """The numbered lines of a page without code blocks, tables and links, which cannot be broken."""
    is_code = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        elif not is_code and not line.startswith(("|", "    ")):
            yield number, re.sub(r"\]\([^)]*\)", "]", line)


def test_pages_fit_the_page():
    pages = sorted([*source_tree.ROOT.glob("*.md"), *source_tree.ROOT.glob("docs/**/*.md")])
    wide = {str(page.relative_to(source_tree.ROOT)): too_wide(prose(page.read_text(encoding="utf-8"))) for page in pages}
    assert pages
    assert not {page: lines for page, lines in wide.items() if lines}


@pytest.mark.parametrize(
    "text, expected",
    [
        ("// One.\n// Two.\nint a;  ///< three\n\n  /// Four\nint b; // five\n", ["One. Two.", "three", "Four", "five"]),
        ('const char* a = "http://b";\n', []),
        ("/// A.\n///\n/// B.\nint c;\n", ["A.", "B."]),
        ("int a = 0;\n", []),
    ],
)
def test_comments_are_found(text, expected):
    assert comments(text) == expected
