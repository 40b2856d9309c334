"""What the parameters of an optimizer are called among the ranks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import torch


def name_parameters(
    optimizer: torch.optim.Optimizer, named_parameters: Iterable[tuple[str, torch.Tensor]] | None
) -> dict[torch.Tensor, str]:
    """The name of each parameter: from `named_parameters`, which may have more than the optimizer, else `allreduce.noname.<group>.<index>`.

    Errors  ValueError for what are no pairs, for a name or a parameter twice, and for a parameter without a name.
    """
    if named_parameters is None:
        return add_names(optimizer.param_groups, {})
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
    """`names` with one more for each parameter of an optimizer that has none: its place, the same on all ranks."""
    added = dict(names)
    for g, group in enumerate(param_groups):
        for i, parameter in enumerate(group["params"]):
            added.setdefault(parameter, f"allreduce.noname.{g}.{i}")
    return added


def _refuse_duplicates(what: str, values: Iterable[str]) -> None:
    duplicates = sorted(value for value, count in Counter(values).items() if count > 1)
    if duplicates:
        raise ValueError(f"named_parameters has duplicate {what}: {', '.join(duplicates)}")
