"""eventually.py: waiting for a condition, and a second try with more time."""

import pytest
from testbed import OutOfTime, eventually, with_enough_time


def test_a_condition_that_never_holds_is_named_with_its_limit_and_last_value():
    with pytest.raises(OutOfTime, match=r"all are there: not within 0\.02 s; last: \[\]"):
        eventually(lambda: [], "all are there", limit=0.02)


def test_a_longer_limit_is_tried_until_one_is_enough():
    tried = []

    def attempt(limit):
        tried.append(limit)
        return "there" if limit >= 5 else None

    assert with_enough_time(attempt, "it gets there", (1, 5, 30)) == "there"
    assert tried == [1, 5]


def test_a_limit_that_is_never_enough_is_an_error_that_says_so():
    with pytest.raises(OutOfTime, match="it gets there: not within 30 s"):
        with_enough_time(lambda limit: None, "it gets there")
