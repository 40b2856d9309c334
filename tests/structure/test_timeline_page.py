"""The names of events and algorithms in docs/timeline.md against those that the runtime writes."""

import re

import source_tree

PAGE = source_tree.read("docs/timeline.md")
EVENT = re.compile(r'"((?:(?:NEGOTIATE|SHM|HOSTS|GLOO|MEMCPY|INIT|ALLOCATE|WAIT_FOR)_[A-Z_]+)|QUEUE|NCCL|GPU_STAGED|CYCLE_START|TIMELINE_FULL)\\?"')


def sources():
    return {path: path.read_text(encoding="utf-8") for path in sorted((source_tree.ROOT / "runtime").rglob("*.[ch]*")) if path.suffix in (".cc", ".hpp")}


def event_names():
    """Upper-case names that are no settings, which have the same prefixes, and no name of an unknown operation."""
    settings = set(re.findall(r"\bRUNJOB_([A-Z_]+)\b", source_tree.read("docs/environment.md")))
    found = {name for text in sources().values() for name in EVENT.findall(text)}
    return {name for name in found if name not in settings and not name.endswith("UNKNOWN")}


def algorithm_names():
    """Those beside an event's name, and those of shared memory's table."""
    calls = [call for text in sources().values() for call in re.findall(r"tell_stage\(([^;]+);", text)]
    table = source_tree.read("runtime/collectives/shm/tuning/algorithm.hpp")
    names = [name for call in calls for name in re.findall(r'"([a-z][a-z ]+)"', call)]
    return {*names, *re.findall(r'"([\w ]+)"', table[table.index("name_of(") :])}


def listed(heading):
    """The names in the first columns of the tables below a heading."""
    section = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    return {name for line in section.splitlines() if line.startswith("| `") for name in re.findall(r"`([^`]+)`", line.split("|")[1])}


def test_each_event_is_on_the_page():
    missing = {name for name in event_names() if f"`{name}`" not in PAGE and not name.startswith("NEGOTIATE_")}
    assert len(event_names()) > 30 and not missing


def test_each_algorithm_is_on_the_page():
    assert len(algorithm_names()) > 8 and not {name for name in algorithm_names() if f"`{name}`" not in PAGE}


def test_the_page_lists_no_other_move():
    assert listed("The names of moves") - {"algorithm"} == {
        name for name in event_names() if name.startswith(("SHM_", "HOSTS_", "GLOO_", "GPU_")) or name == "NCCL"
    } | algorithm_names()
