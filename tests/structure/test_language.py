"""What can be counted of the plain English that CONTRIBUTING.md asks for: columns, and comments without a subject."""

import ast
import io
import re
import tokenize

import pytest
import source_tree

MOST_COLUMNS = 120
# The folders whose comments are in plain English.
DONE = ("base/", "bindings/", "cli/", "hostfile/", "launcher/", "rendezvous/", "runtime/", "sealed/")
PYTHON = ("python/horovod", "python/runjob")
LANGUAGES = ("C++", "Python")
BARE = re.compile(r"(?:Of|What|Whether)\b")
SAYING = re.compile(r"\b(?:say|says|said|saying|hear|hears|heard|hearing|tell|tells|told|telling)\b", re.IGNORECASE)
QUOTED = re.compile(r'"[^"]*"|`[^`]*`')
COMMENT = re.compile(r"^\s*(?://[/!]?<?|\*)\s?(.*)$")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
TRAILING = re.compile(r"[;{},)]\s*//[/!]?<?\s(.*)$")


def files(language="C++"):
    if language == "Python":
        return source_tree.sources(".py", folders=PYTHON)
    found = source_tree.sources(".cc", ".hpp", ".h", folders=source_tree.OWN_FOLDERS)
    return [path for path in found if str(path).startswith(DONE)]


def cpp_comments(text):
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


def python_comments(text):
    """The paragraphs of docstrings, the comment paragraphs and the trailing comments of Python, each as one line."""
    docstrings = [ast.get_docstring(node) or "" for node in ast.walk(ast.parse(text)) if isinstance(node, DOCUMENTED)]
    found = [" ".join(paragraph.split()) for each in docstrings for paragraph in re.split(r"\n\s*\n", each)]
    last_line = None  # of the comment paragraph that the next line may continue
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT:
            continue
        comment, line, is_whole = token.string.lstrip("#: "), token.start[0], not token.line[: token.start[1]].strip()
        if is_whole and comment and last_line == line - 1:
            found[-1] += " " + comment
        else:
            found.append(comment)
        last_line = line if is_whole and comment else None
    return [comment for comment in found if comment]


def comments(path):
    find = python_comments if path.suffix == ".py" else cpp_comments
    return [(str(path), comment) for comment in find(source_tree.read(path))]


def all_comments(language):
    found = [comment for path in files(language) for comment in comments(path)]
    assert found
    return found


@pytest.mark.parametrize("language", LANGUAGES)
def test_comments_have_a_subject(language):
    bare = [one for one in all_comments(language) if BARE.match(one[1])]
    assert len(bare) < 0.02 * len(all_comments(language)), "\n".join(map(": ".join, bare))


@pytest.mark.parametrize("language", LANGUAGES)
def test_comments_use_the_terms_of_the_field(language):
    """Ranks send, announce, receive, report and notify; they do not say, hear or tell."""
    saying = [one for one in all_comments(language) if SAYING.search(QUOTED.sub("", one[1]))]
    assert len(saying) < 0.005 * len(all_comments(language)), "\n".join(map(": ".join, saying))


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
def test_comments_of_cpp_are_found(text, expected):
    assert cpp_comments(text) == expected


@pytest.mark.parametrize(
    "text, expected",
    [
        ("# One.\n# Two.\na = 1  # three\n#: Four\nb = 2\n", ["One. Two.", "three", "Four"]),
        ("# A.\n#\n# B.\n", ["A.", "B."]),
        ("a = 1  # one\n# Two.\nb = 2  # three\n", ["one", "Two.", "three"]),
        ('"""A\nb.\n\nC.\n"""\n\n\ndef f():\n    """D."""\n', ["A b.", "C.", "D."]),
        ('a = "# not one"\n', []),
    ],
)
def test_comments_of_python_are_found(text, expected):
    assert python_comments(text) == expected
