"""The places that a second vendor of GPUs changes: adding-a-gpu-vendor.md lists them, and each has one home."""

import re

import pytest
import source_tree

# A text that stands in the code of one file, since each vendor needs another one there.
HOMES = {
    '"CUDA_VISIBLE_DEVICES"': "launcher/binding/gpu_choice.cc",
    ".event_query(": "runtime/collectives/cuda/driver.hpp",
    ".stream_query(": "runtime/collectives/cuda/driver.hpp",
}
PAGE = source_tree.read("docs/developers/adding-a-gpu-vendor.md")
PLACES = {title: text for title, text in re.findall(r"^### (.+)\n((?:(?!#).*\n)*)", PAGE, re.MULTILINE)}


def paragraph(place, lead):
    """The paragraph of a place that begins with `lead`."""
    return re.search(rf"^{lead}: (.+?)(?:\n\n|\Z)", PLACES[place].rstrip(), re.MULTILINE | re.DOTALL).group(1)


@pytest.mark.parametrize("text", HOMES)
def test_a_text_has_one_home(text):
    sources = source_tree.sources(".cc", ".hpp", folders=source_tree.OWN_FOLDERS)
    assert [str(path) for path in sources if text in source_tree.read(path)] == [HOMES[text]]


def files_and_names(place):
    """[(file, the functions and constants that the place names in it)]."""
    pairs = re.findall(r"`([^`]+)`(?:\s\(((?:`[^`]+`(?:,\s)?)+)\))?", paragraph(place, "Files"))
    return [(file, [name.removesuffix("()") for name in source_tree.names_in(names)]) for file, names in pairs]


def test_the_page_has_places():
    assert len(PLACES) > 10


@pytest.mark.parametrize("place", PLACES)
def test_a_place_of_the_page_exists(place):
    pairs = files_and_names(place)
    assert pairs
    assert not [file for file, _ in pairs if not (source_tree.ROOT / file).is_file()]
    assert not [(file, name) for file, names in pairs for name in names if not re.search(rf"\b{name}\b", source_tree.read(file))]


@pytest.mark.parametrize("place", PLACES)
def test_a_finder_of_the_page_exists(place):
    """The finder of a forgotten place is a file of the tests, the compiler, or a program that the page asks for."""
    finder = paragraph(place, "Found by")
    files = re.findall(r"`([^`]+)`", finder)
    assert finder.startswith(("nothing", "the compiler", "the second program")) or files
    assert not [file for file in files if not list((source_tree.ROOT / "tests").rglob(file))]


def test_the_members_with_names_of_their_own_are_in_the_list_of_functions():
    members = [name for row in source_tree.table_rows(PAGE, "member") for name in source_tree.names_in(row[0])]
    declared = re.findall(r"X\((\w+), \"cu", source_tree.read("runtime/collectives/cuda/driver_abi.hpp"))
    assert members and set(members) <= set(declared)
