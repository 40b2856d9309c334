"""Every link between the project's pages leads to a file, and every page in docs/ is linked from somewhere."""

import re

import source_tree

LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")


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


def test_every_page_is_linked():
    linked = {(page.parent / target).resolve() for page in pages() for target in LINK.findall(page.read_text(encoding="utf-8"))}
    assert not [str(page) for page in pages() if page.parent.name == "docs" and page.resolve() not in linked]
