"""python/runjob/torch/bucket_plan.py: gradients that come together travel together."""

import pytest

from runjob.torch.bucket_plan import CLOSING_BYTES, Entry, plan

BUCKET_BYTES = 16 << 20

LARGE = BUCKET_BYTES // 2


def _entries(*descriptions):
    """`a`: a large one, `b:1000` of so many bytes, `c:1000:float64` of another dtype, `-d` one that has not come."""
    entries = []
    for text in descriptions:
        name, size, memory = (text.lstrip("-") + "::").split(":")[:3]
        entries.append(Entry(name, memory or "float32", int(size or LARGE), not text.startswith("-")))
    return entries


@pytest.mark.parametrize(
    "descriptions, groups, buckets, closing",
    [
        ([], None, [], ""),
        (["a", "b", "c"], None, ["ab", "c"], ""),
        (["a", "b", "c", "x:100", "y:200"], None, ["ab", "c"], "xy"),
        (["x:100", "y:200"], None, [], "xy"),
        (["a", "x:100", "b:100:float64"], None, ["ax"], "b"),
        (["x:100", f"y:{CLOSING_BYTES}"], None, ["x"], "y"),
        (["x:100", f"y:{CLOSING_BYTES + 1}"], None, ["xy"], ""),
        (["a", "b::float64", "c", "d::float64", "x:8"], None, ["ac", "bd"], "x"),
        (["a", "b", "x:8", "-c", "-d"], None, ["ab", "cd"], "x"),
        (["a", "b:8", "x:8", "-c:8"], None, ["a", "c"], "bx"),
        ([f"a:{BUCKET_BYTES * 9}", "b:8"], None, ["a"], "b"),
        (["a", "b", "c", "d", "e"], 2, ["abc", "de"], ""),
        (["a", "b", "c:8:float64"], 1, ["ab", "c"], ""),
        (["a", "b"], 5, ["a", "b"], ""),
        ([], 3, [], ""),
        (["a", "b", "c", "x:8"], [["c", "a"], [], ["nobody"]], ["ca", "b"], "x"),
        (["a", "b::float64", "x:8"], [["b", "a"], ["x"]], ["b", "a", "x"], ""),
    ],
)
def test_plans(descriptions, groups, buckets, closing):
    planned = plan(_entries(*descriptions), BUCKET_BYTES, groups)
    assert ["".join(bucket) for bucket in planned.buckets] == buckets
    assert "".join(planned.closing) == closing


def test_the_size_of_a_bucket_is_an_option():
    entries = _entries("a:600", "b:600", "c:600", "d:600")
    assert plan(entries, 1000, closes=False).buckets == [["a", "b"], ["c", "d"]]
    assert plan(entries, 1000) == ([["a", "b"], ["c"]], ["d"])  # the closing bucket has at most that size, too
    assert plan(entries, 0) == ([["a"], ["b"], ["c"], ["d"]], [])
