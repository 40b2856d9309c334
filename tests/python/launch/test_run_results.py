"""python/runjob/launch/run_results.py: what the launcher's socket says, and what becomes of it."""

import json
import pickle
import struct

import pytest

from runjob.launch.run_errors import RankError, RunError
from runjob.launch.run_results import Results


def record(rank, block):
    return struct.pack("<iI", rank, len(block)) + block


def verdict(*outcomes, first=None, message="something failed"):
    ranks = [{"rank": rank, "host": f"s{rank}", "outcome": outcome} for rank, outcome in enumerate(outcomes)]
    return record(-1, json.dumps({"ranks": ranks, "first_failed_rank": first, "message": message}).encode())


def value(rank, result):
    data = pickle.dumps(result)
    middle = len(data) // 2
    return [record(rank, b"V" + data[:middle]), record(rank, b"V" + data[middle:]), record(rank, b".")]


def error(rank, what, lost_another=False, exception=None):
    report = {"what": what, "traceback": "Traceback\n", "lost_another": lost_another, "exception": exception}
    return [record(rank, b"E" + pickle.dumps(report)), record(rank, b".")]


def results_of(*records, pieces=7):
    """Fed in small pieces, as a socket may give them."""
    results, data = Results(), b"".join(records)
    for start in range(0, len(data), pieces):
        results.feed(data[start : start + pieces])
    return results


def test_blocks_of_several_ranks_are_put_together():
    first, second = value(0, {"a": 1}), value(1, [2] * 100)
    mixed = [block for pair in zip(first, second) for block in pair]
    assert results_of(*mixed, verdict("ok", "ok")).take(0, "") == [{"a": 1}, [2] * 100]


def test_the_rank_that_failed_first_is_raised():
    with pytest.raises(RankError, match="rank 1 on s1 raised ValueError: bad") as info:
        results_of(*error(0, "KeyError: late"), *error(1, "ValueError: bad"), verdict("failed", "failed", first=1)).take(1, "")
    assert (info.value.rank, info.value.host, info.value.traceback, info.value.exception) == (1, "s1", "Traceback\n", None)


def test_an_error_takes_the_place_of_half_a_result():
    half = record(0, b"V" + b"\x80\x05half")
    with pytest.raises(RankError, match="raised TypeError: x"):
        results_of(half, *error(0, "TypeError: x"), verdict("failed", first=0)).take(1, "")


def test_a_rank_that_left_is_the_cause_of_those_that_lost_it():
    with pytest.raises(RunError, match="rank 0 on s0 ended with status 0 and without a result"):
        results_of(*error(1, "PeerLostError: 0", lost_another=True), verdict("ok", "failed", first=1)).take(1, "")
    with pytest.raises(RankError, match="rank 1 on s1 raised ValueError"):
        results_of(*error(1, "ValueError: own"), verdict("ok", "failed", first=1)).take(1, "")


def test_half_an_error_is_told_by_the_launcher():
    with pytest.raises(RunError, match="something failed") as info:
        results_of(record(0, b"E" + b"half"), verdict("failed", first=0)).take(137, "")
    assert (type(info.value), info.value.rank, info.value.exit_status) == (RunError, 0, 137)


def test_an_exception_that_cannot_be_unpickled_here_is_left_out():
    with pytest.raises(RankError) as info:
        results_of(*error(0, "X", exception=b"no pickle"), verdict("failed", first=0)).take(1, "")
    assert info.value.exception is None


def test_a_result_that_cannot_be_unpickled_here_names_its_rank():
    with pytest.raises(RunError, match="the result of rank 0 on s0 cannot be unpickled here"):
        results_of(record(0, b"V" + b"no pickle"), record(0, b"."), verdict("ok")).take(0, "")


def test_without_a_verdict_the_launchers_own_words_are_raised():
    with pytest.raises(ValueError, match="-np: 'x' is not"):
        Results().take(2, "-np: 'x' is not")
    with pytest.raises(RunError, match="cannot fork"):
        Results().take(125, "cannot fork")
    with pytest.raises(RunError, match="ended with status -9 and without a word"):
        Results().take(-9, "")
