"""python/runjob/torch/host_words.py, which needs no GPU."""

import pytest
import torch

import runjob.torch as hvd
from runjob.exceptions import MismatchError
from runjob.process_sets import global_process_set
from runjob.torch.buckets import GradientReduction
from runjob.torch.host_words import HostWords


def _words(op):
    hvd.init()
    rank = hvd.rank()
    reduction = GradientReduction(op, 1.0, 1.0, hvd.Compression.none, global_process_set)
    words = HostWords("words", 3, 2, reduction)
    first, second = words.take(2), words.take(1)
    found = []
    for _ in range(2):  # again in each step
        first[0] = first[1] = reduction.word(True)
        first[rank] = second[0] = reduction.word(False)
        words.submit(False, [rank == 1, False])
        assert words.is_submitted
        words.finish()
        assert not words.is_submitted
        found.append([reduction.is_any(word) for word in (*first, *second)] + [words.is_any(0), words.is_any(1)])
    return found


@pytest.mark.parametrize("op", [hvd.Average, hvd.Sum, hvd.Min, hvd.Max, hvd.Product])
def test_a_word_is_yes_where_any_rank_has_said_yes(call_ranks, op):
    assert call_ranks(_words, 2, op) == [[[True, True, False, True, False]] * 2] * 2


def _failed():
    hvd.init()
    reduction = GradientReduction(hvd.Sum, 1.0, 1.0, hvd.Compression.none, global_process_set)
    words = HostWords("words", hvd.rank(), 1, reduction)  # the ranks disagree on the number
    words.submit(False, [True])
    with pytest.raises(MismatchError):
        words.finish()
    return words.is_submitted


def test_a_reduction_that_fails_is_over(call_ranks):
    assert call_ranks(_failed, 2) == [False, False]
