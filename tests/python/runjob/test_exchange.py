"""python/runjob/exchange.py and init(exchange=...): processes that find each other by a function of the program."""

import ast
import os
import pathlib

import pytest

import ranks
from runjob import basics

SCRIPT = pathlib.Path(__file__).with_name("exchanging.py")


def results_of(function, size, **variables):
    """What a function of exchanging.py gives for each rank."""
    done = ranks.python(str(SCRIPT), function, str(size), **variables)
    assert done.returncode == 0, done.stderr
    return [ast.literal_eval(line) if line[0] in "[(" else line for line in done.stdout.splitlines()]


def test_processes_are_a_job_by_their_pipes():
    expected = [[(rank, 3, rank, 3, 6.0, rank == 1)] * 2 for rank in range(3)]
    assert results_of("trained", 3) == expected


def test_each_rank_gets_the_exception_of_its_own_exchange():
    first, second = results_of("one_raises", 2)
    assert first.partition(":")[0] in ("EOFError", "ConnectionResetError", "BrokenPipeError")  # of its pipe
    assert second == "OSError: the store is gone"


@pytest.mark.parametrize(("function", "answers"), [("gives_too_few", 1), ("gives_too_many", 3)])
def test_too_few_and_too_many_answers_are_counted(function, answers):
    for text in results_of(function, 2):
        assert f"init(): the exchange gave {answers} answers among 2 ranks" in text


def test_answers_that_are_no_bytes_are_refused():
    for rank, text in enumerate(results_of("gives_texts", 2)):
        assert text.startswith(f"TypeError: the exchange of init(), on rank {rank} of 2, gives the bytes of each rank, and has given ")


def test_two_processes_of_one_rank_are_refused():
    assert all("each process needs a rank of its own" in text for text in results_of("same_rank", 2))


def test_an_exchange_that_blocks_is_given_up_after_the_start_timeout():
    (text, again, seconds), other = results_of("one_does_not_come", 2, RUNJOB_START_TIMEOUT="1")
    assert other == "did not come"
    assert text.startswith("WaitTimeoutError: the exchange of init(), on rank 0 of 2, has not returned after 1 s: not all processes")
    assert again.startswith("RuntimeError: an earlier init() of this process was interrupted, or gave up")
    assert seconds < 10


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"exchange": 7, "rank": 0, "size": 1}, "init(exchange=7): give a function"),
        ({"rank": 0, "size": 1}, "init(exchange=None): give a function"),
        ({"exchange": list}, "init(exchange=..., rank=None, size=None): rank and size are whole numbers"),
        ({"exchange": list, "rank": 2, "size": 2}, "init(exchange=..., rank=2, size=2): ranks of 2 are 0 to 1"),
        ({"exchange": list, "rank": 0, "size": 0}, "init(exchange=..., rank=0, size=0): the size is at least 1"),
        ({"exchange": list, "rank": True, "size": 2}, "rank and size are whole numbers"),
        ({"exchange": list, "rank": 0, "size": 1, "comm": [0]}, "give comm, or exchange with rank and size, and not both"),
    ],
)
def test_arguments_that_cannot_be(arguments, text):
    with pytest.raises(ValueError) as caught:
        basics.init(**arguments)
    assert text in str(caught.value)
    assert not basics.is_initialized()


def _jobs_of_one():
    basics.init(exchange=lambda blob: [blob], rank=0, size=1)
    return basics.rank(), basics.size(), os.environ["RUNJOB_SIZE"]


def test_it_beats_the_variables_of_the_launcher(run_ranks):
    assert run_ranks(_jobs_of_one, 2).results == [(0, 1, "2")] * 2
