"""docs/timeline.md names each event that says which way the data moved, and each algorithm, as the sources write them."""

import re

import source_tree

PAGE = source_tree.read("docs/timeline.md")
STAGE = re.compile(r'\btell_stage\((?:"([A-Z_]+)"|\w+), ("[^;]*|nullptr)\)')


def test_events_and_algorithms_are_on_the_page():
    texts = [source_tree.read(path) for path in source_tree.sources(".cc", ".hpp", folders=("runtime",))]
    calls = [found for text in texts for found in STAGE.findall(text)]
    names = {name for name, _ in calls if name} | set(re.findall(r'return "((?:SHM|HOSTS|GLOO)_[A-Z_]+)"', "".join(texts)))
    algorithms = {text for _, arguments in calls for text in re.findall(r'"([^"]+)"', arguments)}
    algorithms |= set(re.findall(r'"([^"]+)"', re.search(r"name_of\(const Algorithm.*?\n}", "".join(texts), re.DOTALL).group()))
    assert len(names) > 12 and {"ring", "one step", "round of negotiation"} <= algorithms
    assert not sorted(name for name in names | algorithms if f"`{name}`" not in PAGE)
