"""How many words the pages for users have: a gauge that shows where to look. A page for developers may be of any length."""

import re

import source_tree

MOST = 35_000  # of all pages for users together: the aim
LIMIT = 40_000  # a test fails above it
MOST_OF_A_PAGE = 2_000


def words(text):
    """The words of a page. The bars of tables, dashes and marks are none."""
    return sum(1 for word in text.split() if re.search(r"\w", word))


def by_page():
    """{page: words} of docs/*.md, the longest first."""
    pages = {path.name: words(path.read_text(encoding="utf-8")) for path in source_tree.ROOT.glob("docs/*.md")}
    return dict(sorted(pages.items(), key=lambda item: -item[1]))


def report():
    counted = by_page()
    lines = [f"{sum(counted.values()):6}  all {len(counted)} pages; at most {MOST} is the aim"]
    return lines + [f"{count:6}  {page}" + ("  (long)" if count > MOST_OF_A_PAGE else "") for page, count in counted.items()]
