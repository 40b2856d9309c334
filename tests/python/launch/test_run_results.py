"""python/runjob/launch/run_results.py: what the launcher's socket says, and what becomes of it."""

import base64
import json
import os
import pickle
import struct

import pytest
from hostile_bytes import changed

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
    sent = None if exception is None else base64.b64encode(exception).decode()
    report = {"what": what, "traceback": "Traceback\n", "lost_another": lost_another, "exception": sent}
    return [record(rank, b"E" + json.dumps(report).encode()), record(rank, b".")]


class Code:
    """A pickle of it leaves a mark when it is loaded, as a hostile host's would."""

    def __init__(self, mark):
        self.mark = str(mark)

    def __reduce__(self):
        return os.mkdir, (self.mark,)


def results_of(*records, pieces=7, form="pickle"):
    """Fed in small pieces, as a socket may give them."""
    results, data = Results(form), b"".join(records)
    for start in range(0, len(data), pieces):
        results.feed(data[start : start + pieces])
    return results


def test_blocks_of_several_ranks_are_put_together():
    first, second = value(0, {"a": 1}), value(1, [2] * 100)
    mixed = [block for pair in zip(first, second) for block in pair]
    assert results_of(*mixed, verdict("ok", "ok")).take(0, "") == [{"a": 1}, [2] * 100]


def test_results_of_an_elastic_job_are_those_of_the_last_generations_processes():
    ranks = [{"rank": rank, "host": "s1", "outcome": "ok"} for rank in range(2)]
    document = {"ranks": ranks, "first_failed_rank": None, "message": "", "generations": [{"processes": [0, 1, 2]}, {"processes": [2, 3]}]}
    end = record(-1, json.dumps(document).encode())
    assert results_of(*value(3, "three"), *value(0, "lost"), *value(2, "two"), end).take(0, "") == ["two", "three"]
    with pytest.raises(RunError, match="rank 1 on s1 ended with status 0 and without a result"):
        results_of(*value(2, "two"), *value(1, "lost"), end).take(0, "")


def test_an_elastic_job_that_cannot_go_on_names_what_its_last_rank_raised():
    ranks = [{"rank": 0, "host": "s1", "outcome": "failed"}]
    document = {"ranks": ranks, "first_failed_rank": None, "message": "it cannot go on", "generations": [{"processes": [5]}]}
    end = record(-1, json.dumps(document).encode())
    with pytest.raises(RankError, match="^it cannot go on; rank 0 on s1 raised ValueError: bad\n"):
        results_of(*error(0, "KeyError: of a lost process"), *error(5, "ValueError: bad"), end).take(125, "")


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


def test_an_exception_is_unpickled_only_when_it_is_read(tmp_path):
    mark = tmp_path / "code ran"
    with pytest.raises(RankError, match="raised X") as info:
        results_of(*error(0, "X", exception=pickle.dumps(Code(mark))), verdict("failed", first=0)).take(1, "")
    assert not mark.exists()
    assert info.value.exception is None and mark.exists()


def test_a_caller_of_json_unpickles_nothing(tmp_path):
    mark = tmp_path / "code ran"
    code = pickle.dumps(Code(mark))
    with pytest.raises(RankError, match="raised X") as info:
        results_of(*error(0, "X", exception=code), verdict("failed", first=0), form="json").take(1, "")
    assert info.value.exception is None
    with pytest.raises(RunError, match="the result of rank 0 on s0 is no JSON"):
        results_of(record(0, b"V" + code), record(0, b"."), verdict("ok"), form="json").take(0, "")
    number = [record(0, b"V[1, 2"), record(0, b"V]"), record(0, b".")]
    assert results_of(*number, verdict("ok"), form="json").take(0, "") == [[1, 2]]
    assert not mark.exists()


@pytest.mark.parametrize("report", [b"{", b"[]", b'{"what": 5}', b"[" * 200_000, pickle.dumps({"what": "X"})])
def test_a_report_that_makes_no_sense_is_named_with_its_host(report):
    with pytest.raises(RunError, match="something failed\nrank 0 on s0: its report of an exception cannot be read") as info:
        results_of(record(0, b"E" + report), record(0, b"."), verdict("failed", first=0), pieces=1 << 20).take(1, "")
    assert (type(info.value), info.value.rank) == (RunError, 0)


def test_a_report_moves_no_cursor_of_the_callers_terminal():
    with pytest.raises(RankError) as info:
        results_of(*error(0, "X\x1b]52;c;YQ==\x07\x9b2J\n\ty"), verdict("failed", first=0)).take(1, "")
    assert "raised X2J\n\ty" in str(info.value)
    with pytest.raises(RunError) as info:
        results_of(verdict("failed", first=0, message="rank 0 failed\n  its stderr: \x1b[2Jtext")).take(1, "")
    assert str(info.value) == "rank 0 failed\n  its stderr: text"


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


def take_from_hostile_rank(blocks, mark, form):
    """Rank 0 is honest, and the host of rank 1 sends `blocks`: nothing that it sends keeps rank 0's result back, but an error of run()'s."""
    first = json.dumps({"a": 1}).encode() if form == "json" else pickle.dumps({"a": 1})
    records = [record(0, b"V" + first), record(0, b"."), *(record(1, block) for block in blocks)]
    try:
        results = results_of(*records, verdict("ok", "ok"), pieces=1000, form=form)
        assert results.take(0, "")[0] == {"a": 1}
    except RunError as error:
        assert error.rank == 1 and "rank 1" in str(error)
    assert not mark.exists()


def test_any_bytes_of_a_rank_are_a_result_or_an_error_that_names_it(tmp_path):
    mark = tmp_path / "mark"
    report = json.loads(error(1, "ValueError: bad", exception=pickle.dumps(Code(mark)))[0][9:])
    honest = [[b"V" + pickle.dumps([1, "two"]), b"."], [b"E" + json.dumps(report).encode(), b"."], [b"V[1, 2]", b"V", b"."]]
    for seed in range(1000):
        blocks = [changed(block, seed + number) for number, block in enumerate(honest[seed % 3])]
        take_from_hostile_rank(blocks, mark, "json")
        take_from_hostile_rank([b"V" + pickle.dumps(Code(mark)), *blocks], mark, "json")


def test_what_a_rank_sends_after_its_end_or_its_error_is_left_out():
    late = [record(0, b"V" + b"x" * 1000), record(0, b"E{}"), record(0, b".")]
    assert results_of(*value(0, "a result"), *late, verdict("ok")).take(0, "") == ["a result"]
    report, end = error(0, "ValueError: bad")
    records = [report, record(0, b"Vx"), record(0, b"?x"), end, *late]
    with pytest.raises(RankError, match="rank 0 on s0 raised ValueError: bad"):
        results_of(*records, verdict("failed", first=0)).take(1, "")
