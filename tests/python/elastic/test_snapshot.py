"""python/runjob/elastic/snapshot.py, in one process"""

import numpy as np
import pytest

from runjob.elastic import snapshot


def test_arrays_are_copied_into_the_same_memory_each_time():
    copies = snapshot.Snapshot()
    weights, more = np.zeros((3, 5)), np.arange(4)
    copies.keep(copies.prepare({"weights": weights, "step": 1}))
    first = copies.copies()[0]
    weights += 1
    copies.keep(copies.prepare({"weights": weights, "step": 2, "more": [more]}))
    assert copies.copies()[0] is first and (first == 1).all(), "also when another array has come"
    copies.keep(copies.prepare({"weights": weights, "more": []}))
    assert copies.copies() == [first]
    copies.keep(copies.prepare({"weights": weights.astype("float32")}))
    assert copies.copies()[0] is not first and copies.copies()[0].dtype == np.float32


def test_the_bytes_of_a_snapshot_make_another_one():
    source, target = snapshot.Snapshot(), snapshot.Snapshot()
    values = {"a": np.arange(5), "b": [np.ones((2, 3), "float16"), np.zeros(0)], "step": 3}
    source.keep(source.prepare({"a": values["a"]}))
    source.keep(source.prepare(values))
    blocks = source.sent()
    with target.receiving(source.outline, source.layout()) as room:
        for mine, block in zip(room, blocks, strict=True):
            assert not target.is_whole
            mine[:] = block
    assert target.is_whole and target.forms() == source.forms()
    assert all((one == other).all() for one, other in zip(source.copies(), target.copies()))
    assert snapshot.block_sizes(source.layout()) == [len(block) for block in blocks] and len(blocks) == 2


def test_a_snapshot_that_has_not_been_received_whole_is_none():
    source, target = snapshot.Snapshot(), snapshot.Snapshot()
    for each in (source, target):
        each.keep(each.prepare({"a": np.arange(5)}))
    with pytest.raises(ConnectionError), target.receiving(source.outline, source.layout()):
        raise ConnectionError
    assert not target.is_whole
