"""python/runjob/run_errors.py: what run() raises."""

import pickle

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
