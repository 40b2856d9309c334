"""python/runjob/torch/parameter_names.py: names from the user, else from the place."""

import pytest
import torch

from runjob.torch.parameter_names import add_names, group_names, keys_among_ranks, name_parameters

FIRST, SECOND, THIRD = (torch.ones(extent, requires_grad=True) for extent in (2, 3, 4))


def _optimizer():
    return torch.optim.SGD([{"params": [FIRST, SECOND]}, {"params": [THIRD]}], lr=1.0)


def test_without_names_it_is_the_place():
    names = name_parameters(_optimizer(), None)
    assert names == {FIRST: "allreduce.noname.0.0", SECOND: "allreduce.noname.0.1", THIRD: "allreduce.noname.1.0"}


def _with_names_of_pytorch(*names_of_groups):
    optimizer = _optimizer()
    for group, names in zip(optimizer.param_groups, names_of_groups, strict=True):
        group["param_names"] = names  # as PyTorch does from 2.6 on
    return optimizer


def test_those_of_pytorch_come_before_the_place_unless_two_are_the_same():
    assert name_parameters(_with_names_of_pytorch(["a", "b"], ["c"]), None) == {FIRST: "a", SECOND: "b", THIRD: "c"}
    names = name_parameters(_with_names_of_pytorch(["a", "b"], ["a"]), None)
    assert names == {FIRST: "allreduce.noname.0.0", SECOND: "b", THIRD: "allreduce.noname.1.0"}


def test_ranks_find_a_parameter_by_its_name_and_else_by_its_place():
    assert keys_among_ranks(_optimizer()) == [["parameter 0 of group 0", "parameter 1 of group 0"], ["parameter 0 of group 1"]]
    assert keys_among_ranks(_with_names_of_pytorch(["a", "b"], ["c"])) == [["a", "b"], ["c"]]
    same = _with_names_of_pytorch(["a", "b"], ["a"])
    assert keys_among_ranks(same) == [["parameter 0 of group 0 (a)", "b"], ["parameter 0 of group 1 (a)"]]
    same._parameter_names = {FIRST: "x", SECOND: "y", THIRD: "allreduce.noname.1.0"}  # of a DistributedOptimizer
    assert keys_among_ranks(same) == [["x", "y"], ["parameter 0 of group 1"]]


def test_a_group_is_called_after_its_first_key():
    assert group_names([["b", "a"], [], ["c"], []]) == ["a", "0 without parameters", "c", "1 without parameters"]


def test_more_names_than_parameters_are_allowed_and_used_later():
    optimizer = torch.optim.SGD([FIRST], lr=1.0)
    names = name_parameters(optimizer, iter([("a", FIRST), ("b", SECOND)]))
    optimizer.add_param_group({"params": [SECOND, THIRD]})
    assert add_names(optimizer.param_groups, names) == {FIRST: "a", SECOND: "b", THIRD: "allreduce.noname.1.1"}


@pytest.mark.parametrize(
    "named, text",
    [
        (["a"], "must be pairs .* not 'a'"),
        ([FIRST], "must be pairs"),
        ([("a", FIRST, 1)], "must be pairs"),
        ([(FIRST, "a")], "must be pairs"),
        ([("a", FIRST), ("b", SECOND), ("a", THIRD), ("b", FIRST)], "duplicate names: a, b$"),
        ([("a", FIRST)], r"does not name .*: 1 of group 0 \(shape \(3,\)\), 0 of group 1 \(shape \(4,\)\)"),
        ([], "does not name"),
    ],
)
def test_names_that_do_not_do(named, text):
    with pytest.raises(ValueError, match=text):
        name_parameters(_optimizer(), named)
