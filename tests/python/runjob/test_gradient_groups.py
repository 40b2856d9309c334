"""python/runjob/gradient_groups.py: which gradients go together."""

import pytest

from runjob.gradient_groups import given_groups, grouped

MIB = 1 << 20


@pytest.mark.parametrize(
    "sizes, groups, expected",
    [
        ([MIB] * 3, None, [[2, 1, 0]]),
        ([10 * MIB, 10 * MIB, 10 * MIB], None, [[2, 1], [0]]),  # full from 16 MiB on
        ([1] * 5, 2, [[0, 1, 2], [3, 4]]),
        ([1] * 2, 5, [[0], [1]]),
        ([1] * 4, [["c", "a"], ["x"]], [[0, 2], [3, 1]]),
    ],
)
def test_groups(sizes, groups, expected):
    assert list(grouped(range(len(sizes)), sizes, "abcde", groups, 16 * MIB)) == expected


def test_the_size_of_a_group_is_an_option():
    assert list(grouped(range(4), [MIB] * 4, "abcd", None, 2 * MIB)) == [[3, 2], [1, 0]]
    assert list(grouped(range(3), [MIB] * 3, "abc", None, 0)) == [[2], [1], [0]]


def test_what_users_say():
    assert given_groups(0, None) is None and given_groups(0, 0) is None and given_groups(0, [["a"]]) == [["a"]]
    with pytest.warns(DeprecationWarning, match="use groups="):
        assert given_groups(3, None) == 3
    with pytest.raises(ValueError, match="groups=-1: give a number of groups"):
        given_groups(0, -1)
