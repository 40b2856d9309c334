"""python/runjob/torch/comparison.py: what differs among the ranks is named, with the ranks, on all of them."""

import pytest
import torch

import runjob.torch as hvd
from runjob.exceptions import MismatchError
from runjob.torch.comparison import _describe, _listed, compare, form_of, named_tensors, objection_to

ONE = torch.ones(1)


@pytest.mark.parametrize(
    "ranks, text",
    [([1], "rank 1"), ([0, 2], "ranks 0 and 2"), ([0, 1], "ranks 0 and 1"), ([0, 2, 3, 4, 5, 7], "ranks 0, 2-5 and 7"), ([0, 1, 2], "ranks 0-2")],
)
def test_ranks_are_listed(ranks, text):
    assert _listed(ranks) == text


def test_each_version_has_its_ranks():
    assert _describe({0: None, 1: "a", 2: "b", 3: "a"}) == "is a on ranks 1 and 3, b on rank 2, missing on rank 0"
    assert _describe({rank: str(rank) for rank in range(6)}) == "is 0 on rank 0, 1 on rank 1, 2 on rank 2, otherwise on ranks 3-5"


@pytest.mark.parametrize(
    "values, names",
    [
        ({"b": ONE, 3: ONE}, ["b", "3"]),
        ([ONE, ONE], ["tensor 0", "tensor 1"]),
        (iter([("a", ONE), (None, ONE), ONE]), ["a", "tensor 1", "tensor 2"]),
        ({}, []),
    ],
)
def test_tensors_have_names_or_places(values, names):
    assert list(named_tensors(values, "it")) == names


@pytest.mark.parametrize(
    "values, text", [(3, "it takes a dict or a list of tensors, not int"), (ONE, "not Tensor"), ([("a", ONE), ("a", ONE)], "it: a is there twice")]
)
def test_what_names_no_tensors(values, text):
    with pytest.raises(ValueError, match=text):
        named_tensors(values, "it")


def _lazy():
    return torch.nn.LazyLinear(2).weight


def _of_tensors():
    from torch.testing._internal.two_tensor import TwoTensor

    return TwoTensor(torch.ones(2), torch.ones(2))


def _part():
    flat = torch.nn.Parameter(torch.ones(2))
    flat._is_flat_param = True  # what FSDP marks its own with
    return flat


@pytest.mark.parametrize(
    "make, text",
    [
        (lambda: 4, "is int, not a tensor; broadcast_object"),
        (_lazy, "has no shape yet; run the model once"),
        (lambda: torch.ones(2, device="meta"), "is on the device meta and has no values; .*to_empty"),
        (_of_tensors, "is a TwoTensor, whose values lie in other tensors or on other ranks"),
        (_part, "is a Parameter, whose values lie in other tensors or on other ranks"),
        (lambda: torch.eye(2).to_sparse(), r"is not dense \(sparse_coo\); use to_dense\(\)"),
        (lambda: torch.nested.nested_tensor([torch.ones(1), torch.ones(2)]), r"is not dense \(nested\)"),
        (lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.quint8), r"is quantized \(torch.quint8\)"),
        (lambda: torch.ones(2, dtype=torch.complex64).conj(), "^$"),
    ],
)
@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor", "ignore:Lazy modules", "ignore:The PyTorch API of nested")
def test_what_cannot_travel(make, text):
    import re

    assert re.search(text, objection_to(make()))


def test_a_form_has_dtype_and_shape():
    assert form_of(torch.ones(2, 3, dtype=torch.bfloat16)) == "bfloat16 [2, 3]"


def test_an_objection_needs_no_job():
    with pytest.raises(ValueError, match="^it: 4 is no tensor$"):
        compare("it", {}, "4 is no tensor", "", hvd.global_process_set)


def _outcome(facts, objection=""):
    try:
        return compare("it", facts, objection, "Do this", hvd.global_process_set, f"of {hvd.rank()}")
    except (ValueError, MismatchError) as error:
        return f"{type(error).__name__}: {error}"


def _compare():
    hvd.init()
    rank = hvd.rank()
    return [
        _outcome({"a": "1", "b": "2"} if rank else {"b": "2", "a": "1"}),
        _outcome({"a": "1", "b": str(rank // 2)}),
        _outcome({"a": "1"} if rank == 1 else {}),
        _outcome({str(i): str(rank) for i in range(5)}),
        _outcome({"a": str(rank)}, "has nothing" if rank == 1 else ""),
        _outcome({}),
    ]


def test_all_ranks_hear_the_same(call_ranks):
    outcomes = call_ranks(_compare, 3)
    of_each = {rank: f"of {rank}" for rank in range(3)}
    others = " is 0 on rank 0, 1 on rank 1, 2 on rank 2"
    assert outcomes[0] == outcomes[1] == outcomes[2] == [
        of_each,
        "MismatchError: it: the ranks differ: b is 0 on ranks 0 and 1, 1 on rank 2. Do this",
        "MismatchError: it: the ranks differ: a is 1 on rank 1, missing on ranks 0 and 2. Do this",
        f"MismatchError: it: the ranks differ: 0{others}; 1{others}; 2{others}; 2 more of 5 differ. Do this",
        "ValueError: it: on rank 1 has nothing",
        of_each,
    ]  # fmt: skip
