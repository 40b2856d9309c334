"""python/runjob/launch/run_errors.py: what run() raises."""

import pickle
import traceback

import pytest

import runjob


def test_they_are_runtime_errors_as_horovods():
    assert issubclass(runjob.RunError, RuntimeError) and issubclass(runjob.RankError, runjob.RunError)


def test_what_they_carry_survives_a_pickle():
    error = runjob.RankError("rank 1 on s1 raised X", 1, "s1", 3, {"cause": "rank failed"})
    error.traceback = "Traceback"
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.rank, copy.host, copy.exit_status, copy.verdict, copy.traceback) == (
        "rank 1 on s1 raised X", 1, "s1", 3, {"cause": "rank failed"}, "Traceback",
    )  # fmt: skip


@pytest.mark.parametrize("name", ["RunError", "RankError"])
def test_tracebacks_and_pickles_have_the_name_that_users_know(name):
    error = getattr(runjob, name)("no")
    assert traceback.format_exception_only(type(error), error) == [f"runjob.{name}: no\n"]
    assert type(pickle.loads(f"crunjob\n{name}\n(S'no'\ntR.".encode())) is type(error)
