"""The places that a second vendor of GPUs changes, beside kNvidia of vendor.hpp: each has one home."""

import pytest
import source_tree

# A text that stands in the code of one file, since each vendor needs another one there.
HOMES = {
    '"CUDA_VISIBLE_DEVICES"': "launcher/binding/gpu_choice.cc",
    ".event_query(": "runtime/collectives/cuda/driver.hpp",
    ".stream_query(": "runtime/collectives/cuda/driver.hpp",
}


@pytest.mark.parametrize("text", HOMES)
def test_a_text_has_one_home(text):
    sources = source_tree.sources(".cc", ".hpp", folders=source_tree.OWN_FOLDERS)
    assert [str(path) for path in sources if text in source_tree.read(path)] == [HOMES[text]]
