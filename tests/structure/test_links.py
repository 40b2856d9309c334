"""Every link between the project's pages leads to a file and a heading, and so does every page that the sources name; the index has each page."""

import re
import subprocess

import page_words
import source_tree

LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")
ANCHOR = re.compile(r"\]\(([^)#:\s]*)#([^)]+)\)")


NAMED = re.compile(r"(?<![\w/.-])(?:[\w-]+/)*[\w-]+\.md\b")
TEXT = {"", ".cc", ".cmake", ".cu", ".h", ".hpp", ".py", ".sbatch", ".sh", ".toml", ".txt", ".yml"}


def pages():
    return sorted([*source_tree.ROOT.glob("*.md"), *(path for folder in ("docs", "examples") for path in source_tree.ROOT.glob(f"{folder}/**/*.md"))])


def sources():
    """The files of the repository, other than pages, that may name a page: in a message, a comment or a test."""
    listed = subprocess.run(["git", "ls-files"], cwd=source_tree.ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    found = [source_tree.ROOT / name for name in listed]
    return [path for path in found if path.suffix in TEXT and "corpus" not in path.parts and path.is_file()]


def test_every_link_leads_to_a_file():
    broken = [
        f"{page.relative_to(source_tree.ROOT)}: {target}"
        for page in pages()
        for target in LINK.findall(page.read_text(encoding="utf-8"))
        if not (page.parent / target).exists()
    ]
    assert not broken


def test_every_page_that_a_source_names_exists():
    """A page is named by its path from the root, in the product and the build files also by its file's name alone."""
    names = {page.name for page in pages()}
    named = [(path.relative_to(source_tree.ROOT), name) for path in sources() for name in NAMED.findall(path.read_text(encoding="utf-8"))]
    assert len(named) > 50
    paths = [(path, name) for path, name in named if name.startswith("docs/")]
    assert not [(str(path), name) for path, name in paths if not (source_tree.ROOT / name).is_file()]
    alone = [(path, name) for path, name in named if "/" not in name and path.parts[0] in (*source_tree.OWN_FOLDERS, "cmake", "python")]
    assert not [(str(path), name) for path, name in alone if name not in names]


def headings(page):
    """The anchors that the page's headings have."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_every_anchor_is_a_heading():
    found = [(page, *link) for page in pages() for link in ANCHOR.findall(page.read_text(encoding="utf-8"))]
    assert found
    broken = [(page.name, target, anchor) for page, target, anchor in found if anchor not in headings(page.parent / target if target else page)]
    assert not broken


def test_the_index_has_every_page():
    index = source_tree.ROOT / "docs" / "README.md"
    linked = {(index.parent / target).resolve() for target in LINK.findall(index.read_text(encoding="utf-8"))}
    in_docs = [page for page in index.parent.glob("**/*.md") if page != index]
    assert in_docs
    assert not [str(page) for page in in_docs if page.resolve() not in linked]


def test_llms_txt_has_every_page_for_users_and_no_missing_one():
    """The list for programs that read the project: https://llmstxt.org has the form."""
    targets = LINK.findall(source_tree.read("llms.txt"))
    assert not [target for target in targets if not (source_tree.ROOT / target).exists()]
    assert not [page.name for page in source_tree.ROOT.glob("docs/*.md") if f"docs/{page.name}" not in targets]


def test_words_are_counted_without_the_bars_of_tables():
    assert page_words.words("| `a` | two words |\n|---|---|\n\n- one * 2\n") == 5


def test_the_pages_for_users_can_be_held_in_the_head():
    assert 10_000 < sum(page_words.by_page().values()) < page_words.LIMIT
