"""How the ranks come to the same idea of their gradients: each says what it has, all hear all, and all conclude the same."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from .. import handles
from ..exceptions import MismatchError
from ..process_sets import ProcessSet
from .operations import calls


class Form(NamedTuple):
    """What a gradient looks like on a rank.

    strides      of dense memory without gaps; None: row-major is what suits all ranks.
    sparse_dims  of a sparse gradient; 0: dense, or none was seen.
    """

    shape: tuple[int, ...]
    dtype: str
    strides: tuple[int, ...] | None
    sparse_dims: int

    def is_row_major(self) -> bool:
        ordered = [stride for stride, extent in zip(self.strides or (), self.shape) if extent != 1]
        return ordered == sorted(ordered, reverse=True)


class Agreement(NamedTuple):
    """forms  by name, in the order in which the gradients come, and the buckets are to be.
    came   how many of them, the first ones, have come in the last step.
    """

    forms: dict[str, Form]
    came: int


def agree(name: str, forms: dict[str, Form], came: Sequence[str], process_set: ProcessSet) -> Agreement:
    """Blocks until all ranks of the set have called it under `name`.

    forms  this rank's gradients, in an order that is the same on all ranks. came: those that came in the last step, in order.
    Errors  MismatchError, on all ranks, which names a parameter that not all of them have alike.
    """
    said = json.dumps({"forms": forms, "came": list(came)}).encode() + b"\n"
    call = calls.allgather(torch.frombuffer(bytearray(said), dtype=torch.uint8), name, process_set)
    heard = [_read(line) for line in handles.run(call).numpy().tobytes().splitlines()]
    return conclude(heard)


def _read(line: bytes) -> tuple[dict[str, Form], list[str]]:
    said = json.loads(line)
    return {name: Form(*map(_tuples, form)) for name, form in said["forms"].items()}, said["came"]


def _tuples(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def conclude(heard: Sequence[tuple[dict[str, Form], Sequence[str]]]) -> Agreement:
    """What follows from the ranks' (forms, came). The order is that of the first rank to which any have come; the others follow."""
    first = heard[0][0]
    came = next((came for _, came in heard if came), ())
    for rank, (forms, _) in enumerate(heard):
        _check_names(first, forms, rank)
    order = [*came, *(name for name in first if name not in set(came))]
    return Agreement({name: _common(name, [forms[name] for forms, _ in heard]) for name in order}, len(came))


def _check_names(first: dict[str, Form], forms: dict[str, Form], rank: int) -> None:
    for here, there, without in ((first, forms, rank), (forms, first, 0)):
        lacking = [name for name in here if name not in there]
        if lacking:
            raise MismatchError(
                f"DistributedOptimizer: the gradient of {lacking[0]} is reduced on rank {rank - without} of the process set but not on "
                f"rank {without}; give all ranks the same parameters, with the same names and requires_grad"
            )


def _common(name: str, forms: Sequence[Form]) -> Form:
    first = forms[0]
    for rank, form in enumerate(forms):
        for what in ("shape", "dtype"):
            ours, theirs = getattr(first, what), getattr(form, what)
            if ours != theirs:
                raise MismatchError(
                    f"DistributedOptimizer: the ranks disagree about {name}: its {what} is {ours} on rank 0 of the process set "
                    f"and {theirs} on rank {rank}"
                )
    strides = first.strides if all(form.strides == first.strides for form in forms) else None
    return Form(first.shape, first.dtype, strides, max(form.sparse_dims for form in forms))


def form_of(parameter: torch.Tensor, sparse_dims: int) -> Form:
    """The form of the gradient of `parameter`."""
    strides = parameter.stride() if is_dense(parameter) else None
    return Form(tuple(parameter.shape), str(parameter.dtype), strides, sparse_dims)


def is_dense(tensor: torch.Tensor) -> bool:
    """Whether the elements fill their memory: in whatever order, without gaps or overlap."""
    expected = 1
    for stride, extent in sorted(zip(tensor.stride(), tensor.shape)):
        if extent != 1 and stride != expected:
            return False
        expected *= extent
    return True
