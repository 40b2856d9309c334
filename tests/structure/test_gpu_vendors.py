"""The places that a second vendor of GPUs changes: docs/internals/adding-a-backend.md lists them, and each has one home."""

import re

import pytest
import source_tree

# A text that stands in the code of one file, since each vendor needs another one there.
HOMES = {
    '"CUDA_VISIBLE_DEVICES"': "launcher/binding/gpu_choice.cc",
    ".event_query(": "runtime/collectives/cuda/driver.hpp",
    ".stream_query(": "runtime/collectives/cuda/driver.hpp",
}
PAGE = source_tree.read("docs/internals/adding-a-backend.md")
PLACES = list(source_tree.table_rows(PAGE, "place"))


@pytest.mark.parametrize("text", HOMES)
def test_a_text_has_one_home(text):
    sources = source_tree.sources(".cc", ".hpp", folders=source_tree.OWN_FOLDERS)
    assert [str(path) for path in sources if text in source_tree.read(path)] == [HOMES[text]]


def files_and_names(cell):
    """The files that a place names, and its functions and constants."""
    named = source_tree.names_in(cell)
    files = [name for name in named if re.search(r"\.\w+$", name)]
    return files, [name.removesuffix("()") for name in named if name not in files]


@pytest.mark.parametrize("place", [place for place, *_ in PLACES])
def test_a_place_of_the_page_exists(place):
    files, names = files_and_names(place)
    assert files
    text = "".join(source_tree.read(file) for file in files)
    assert not [name for name in names if not re.search(rf"\b{name}\b", text)]


@pytest.mark.parametrize("finder", sorted({finder for *_, finder in PLACES}))
def test_a_finder_of_the_page_exists(finder):
    """The finder of a forgotten place is a file of the tests, the compiler, or a program that the page asks for."""
    files = re.findall(r"`([^`]+)`", finder)
    assert finder.startswith(("nothing", "the compiler", "the second program")) or files
    assert not [file for file in files if not list((source_tree.ROOT / "tests").rglob(file))]


def test_the_members_with_names_of_their_own_are_in_the_list_of_functions():
    members = [name for row in source_tree.table_rows(PAGE, "member") for name in source_tree.names_in(row[0])]
    declared = re.findall(r"X\((\w+), \"cu", source_tree.read("runtime/collectives/cuda/driver_abi.hpp"))
    assert members and set(members) <= set(declared)
