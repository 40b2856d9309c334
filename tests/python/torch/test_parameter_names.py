"""python/runjob/torch/parameter_names.py: names from the user, else from the place."""

import pytest
import torch

from runjob.torch.parameter_names import add_names, name_parameters

FIRST, SECOND, THIRD = (torch.ones(extent, requires_grad=True) for extent in (2, 3, 4))


def _optimizer():
    return torch.optim.SGD([{"params": [FIRST, SECOND]}, {"params": [THIRD]}], lr=1.0)


def test_without_names_it_is_the_place():
    names = name_parameters(_optimizer(), None)
    assert names == {FIRST: "allreduce.noname.0.0", SECOND: "allreduce.noname.0.1", THIRD: "allreduce.noname.1.0"}


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
