"""python/runjob/elastic/tree.py"""

import collections

import numpy as np

from runjob.elastic import tree


def test_containers_are_divided_and_joined_again():
    array, shared = np.arange(3), [1]
    values = {"a": {"b": [array, 2], "c": (array, "text")}, "shared": shared, "again": shared, "o": collections.OrderedDict(x=np.ones(1))}
    values["own"] = []
    values["own"].append(values["own"])
    outline, arrays = tree.split(values)
    assert list(arrays) == [("a", "b", 0), ("o", "x")] and arrays["a", "b", 0] is array
    assert tree.paths(outline) == list(arrays)
    joined = tree.join(tree.copied(outline), list(arrays.values()))
    assert joined["a"] == {"b": [array, 2], "c": (array, "text")} and joined["shared"] is joined["again"]
    assert joined["own"][0] is joined["own"] and type(joined["o"]) is collections.OrderedDict
