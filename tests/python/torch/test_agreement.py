"""python/runjob/torch/agreement.py: what follows from what the ranks say, and what they cannot agree on."""

import pytest
import torch

import runjob.torch as hvd
from runjob.exceptions import MismatchError
from runjob.torch.agreement import Announcement, Form, agree, conclude, form_of, is_dense

FORMS = {"a": Form((2,), "torch.float32", (1,), 0), "b": Form((3, 4), "torch.float32", (4, 1), 0), "c": Form((), "torch.float64", (), 0)}


def _conclude(ranks):
    return conclude({rank: Announcement(forms, completed, 100 + rank) for rank, (forms, completed) in ranks.items()})


def test_the_order_is_that_of_the_first_rank():
    agreement = _conclude({0: (FORMS, ["c", "a"]), 1: (FORMS, ["a", "b", "c"])})
    assert list(agreement.forms) == ["c", "a", "b"]
    assert agreement.completed == 2
    assert agreement.forms == FORMS


def test_the_size_of_buckets_is_that_of_the_first_rank_that_has_not_joined():
    assert _conclude({0: (FORMS, []), 1: (FORMS, [])}).bucket_bytes == 100
    assert _conclude({1: (FORMS, []), 2: (FORMS, [])}).bucket_bytes == 101


def test_a_rank_without_completed_gradients_has_no_order():
    agreement = _conclude({0: (FORMS, []), 1: (FORMS, ["b"])})
    assert (list(agreement.forms), agreement.completed) == (["b", "a", "c"], 1)
    assert _conclude({0: (FORMS, []), 1: (FORMS, [])}).completed == 0


def test_a_gradient_that_was_completed_and_frozen_since_has_no_place_in_the_order():
    agreement = _conclude({0: (FORMS, ["x", "c", "y"]), 1: (FORMS, ["a", "b", "c"])})
    assert (list(agreement.forms), agreement.completed) == (["c", "a", "b"], 1)
    agreement = _conclude({0: (FORMS, ["x"]), 1: (FORMS, ["b"])})
    assert (list(agreement.forms), agreement.completed) == (["b", "a", "c"], 1)
    assert _conclude({0: (FORMS, ["x"]), 1: (FORMS, ["x"])}).completed == 0


def test_a_rank_that_has_joined_announces_nothing():
    agreement = _conclude({2: (FORMS, ["b"])})
    assert (list(agreement.forms), agreement.completed) == (["b", "a", "c"], 1)
    with pytest.raises(MismatchError, match="of c is reduced on rank 1 of the process set but not on rank 3"):
        _conclude({1: (FORMS, []), 3: ({"a": FORMS["a"], "b": FORMS["b"]}, [])})


def test_strides_that_differ_become_none_and_one_sparse_gradient_is_enough():
    others = {**FORMS, "a": Form((2,), "torch.float32", (1,), 1), "b": Form((3, 4), "torch.float32", (1, 3), 0)}
    agreement = _conclude({0: (FORMS, []), 1: (others, [])})
    assert agreement.forms["b"].strides is None
    assert agreement.forms["a"].sparse_dims == 1


@pytest.mark.parametrize(
    "others, text",
    [
        ({**FORMS, "d": FORMS["a"]}, "the gradient of d is reduced on rank 1 of the process set but not on rank 0; give all ranks"),
        ({"a": FORMS["a"], "b": FORMS["b"]}, "the gradient of c is reduced on rank 0 of the process set but not on rank 1;"),
        ({**FORMS, "b": FORMS["b"]._replace(shape=(4, 3))}, r"about b: its shape is \(3, 4\) on rank 0 .* and \(4, 3\) on rank 1"),
        ({**FORMS, "c": FORMS["c"]._replace(dtype="torch.float16")}, "about c: its dtype is torch.float64 on rank 0 .* torch.float16"),
    ],
)
def test_disagreements_are_named(others, text):
    with pytest.raises(MismatchError, match=text):
        _conclude({0: (FORMS, []), 1: (others, [])})


@pytest.mark.parametrize(
    "tensor, expected",
    [
        (torch.ones(2, 3), True),
        (torch.ones(2, 3).t(), True),
        (torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last), True),
        (torch.ones(()), True),
        (torch.ones(2, 1, 3), True),
        (torch.ones(4, 3)[::2], False),
        (torch.ones(1, 3).expand(2, 3), False),
        (torch.ones(4, 3)[:, :2], False),
    ],
)
def test_memory_without_gaps_is_found(tensor, expected):
    assert is_dense(tensor) == expected
    assert (form_of(tensor, 0).strides is not None) == expected


@pytest.mark.parametrize(
    "tensor, expected",
    [
        (torch.ones(2, 3), True),
        (torch.ones(2, 3).t(), False),
        (torch.ones(1, 3).t(), True),
        (torch.ones(()), True),
        (torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last), False),
    ],
)
def test_row_major_forms_are_known(tensor, expected):
    assert form_of(tensor, 0).is_row_major() == expected


def _agree():
    hvd.init()
    forms = {"w": form_of(torch.ones(2, 3).t(), hvd.rank()), "ü": form_of(torch.ones(()), 0)}
    agreement = agree("test", Announcement(forms, ["ü"] if hvd.rank() else [], 5 - hvd.rank()), hvd.global_process_set)
    return list(agreement.forms), agreement.completed, agreement.bucket_bytes, tuple(agreement.forms["w"])


def _agree_without_one():
    hvd.init()
    agreement = None
    if hvd.rank() != 1:
        agreement = list(agree("test", Announcement(FORMS, ["b"] if hvd.rank() else [], 0), hvd.global_process_set).forms)
    hvd.join()
    return agreement


def test_ranks_agree_without_one_that_has_joined(call_ranks):
    assert call_ranks(_agree_without_one, 3) == [["b", "a", "c"], None, ["b", "a", "c"]]


def test_ranks_agree(call_ranks):
    assert call_ranks(_agree, 2) == [(["ü", "w"], 1, 5, ((3, 2), "torch.float32", (1, 3), 1, "host"))] * 2
