"""Every link between the project's pages leads to a file and a heading, and docs/README.md lists every page."""

import re

import source_tree

LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")
ANCHOR = re.compile(r"\]\(([^)#:\s]*)#([^)]+)\)")


def pages():
    return sorted([*source_tree.ROOT.glob("*.md"), *source_tree.ROOT.glob("docs/**/*.md")])


def test_every_link_leads_to_a_file():
    broken = [
        f"{page.relative_to(source_tree.ROOT)}: {target}"
        for page in pages()
        for target in LINK.findall(page.read_text(encoding="utf-8"))
        if not (page.parent / target).exists()
    ]
    assert not broken


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
    in_docs = [page for page in pages() if page.is_relative_to(index.parent) and page != index]
    assert in_docs
    assert not [str(page) for page in in_docs if page.resolve() not in linked]
