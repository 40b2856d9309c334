"""The names of an optimizer's parameters among the ranks."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import torch

_NO_NAME = "allreduce.noname"


def name_parameters(
    optimizer: torch.optim.Optimizer, named_parameters: Iterable[tuple[str, torch.Tensor]] | None
) -> dict[torch.Tensor, str]:
    """The name of each parameter. It is from `named_parameters`, which may have more names than the optimizer has
    parameters, else from PyTorch's `param_names`, else `allreduce.noname.<group>.<index>`.

    Errors  ValueError for values that are not pairs, for a name or a parameter twice, and for a parameter without a
            name.
    """
    if named_parameters is None:
        given = _own_names(optimizer)
        unique = {name for name, count in Counter(given.values()).items() if count == 1}
        return add_names(optimizer.param_groups, {parameter: name for parameter, name in given.items() if name in unique})
    named = list(named_parameters)
    for item in named:
        if not (isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str) and isinstance(item[1], torch.Tensor)):
            raise ValueError(
                f"named_parameters must be pairs (name, parameter), as model.named_parameters() gives them, not {item!r:.80}"
            )
    _refuse_duplicates("names", (name for name, _ in named))
    names = {parameter: name for name, parameter in named}
    missing = [
        f"{i} of group {g} (shape {tuple(parameter.shape)})"
        for g, group in enumerate(optimizer.param_groups)
        for i, parameter in enumerate(group["params"])
        if parameter not in names
    ]
    if missing:
        raise ValueError(f"named_parameters does not name these parameters of the optimizer: {', '.join(missing)}")
    return names


def add_names(param_groups: Sequence[dict[str, Any]], names: dict[torch.Tensor, str]) -> dict[torch.Tensor, str]:
    """`names` with an additional name for each parameter of an optimizer that has none: its place, which is the same on
    all ranks.
    """
    added = dict(names)
    for g, group in enumerate(param_groups):
        for i, parameter in enumerate(group["params"]):
            added.setdefault(parameter, f"{_NO_NAME}.{g}.{i}")
    return added


def keys_among_ranks(optimizer: torch.optim.Optimizer) -> list[list[str]]:
    """The keys by which the ranks identify parameters, by group: a parameter's name if the optimizer knows one that no
    other of its parameters has, otherwise its place.
    """
    names: dict[torch.Tensor, str] = getattr(optimizer, "_parameter_names", None) or _own_names(optimizer)
    named = [[names.get(parameter, _NO_NAME) for parameter in group["params"]] for group in optimizer.param_groups]
    counts = Counter(name for group in named for name in group)

    def key(g: int, i: int, name: str) -> str:
        if name.startswith(_NO_NAME):
            return f"parameter {i} of group {g}"
        return name if counts[name] == 1 else f"parameter {i} of group {g} ({name})"

    return [[key(g, i, name) for i, name in enumerate(group)] for g, group in enumerate(named)]


def group_names(keys: Sequence[Sequence[str]]) -> list[str]:
    """The names by which the ranks identify groups, whose parameters may be in another order on another rank: the least
    of a group's keys. An empty group has its number among the empty groups.
    """
    empty = itertools.count()
    return [min(group) if group else f"{next(empty)} without parameters" for group in keys]


def _own_names(optimizer: torch.optim.Optimizer) -> dict[torch.Tensor, str]:
    """The names that PyTorch has, from 2.6 on, of an optimizer that was made with named parameters."""
    return {
        parameter: name for group in optimizer.param_groups for parameter, name in zip(group["params"], group.get("param_names", ()))
    }


def _refuse_duplicates(what: str, values: Iterable[str]) -> None:
    duplicates = sorted(value for value, count in Counter(values).items() if count > 1)
    if duplicates:
        raise ValueError(f"named_parameters has duplicate {what}: {', '.join(duplicates)}")
