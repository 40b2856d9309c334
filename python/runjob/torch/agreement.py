"""Agrees on the gradients of all ranks: each rank announces its own gradients to all, and all draw the same conclusion."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch

from .. import process_sets
from ..exceptions import MismatchError
from ..process_sets import ProcessSet
from ..reduce_ops import Sum
from . import gpus
from .operations import allreduce_


class Form(NamedTuple):
    """The properties of a gradient on a rank.

    strides      those of dense memory without gaps. None: all ranks can use row-major order.
    sparse_dims  the number of a sparse gradient's sparse dimensions. 0: it is dense, or has not been seen.
    memory       "host" or "GPU", the memory in which it lies.
    """

    shape: tuple[int, ...]
    dtype: str
    strides: tuple[int, ...] | None
    sparse_dims: int
    memory: str = "host"

    def is_row_major(self) -> bool:
        ordered = [stride for stride, extent in zip(self.strides or (), self.shape) if extent != 1]
        return ordered == sorted(ordered, reverse=True)


class Agreement(NamedTuple):
    """The conclusion from the announcements of all ranks.

    forms      by name, in the order in which the gradients are completed, which is the order of the buckets.
    completed  the number of gradients that were completed in the last step. They are the first ones of `forms`.
    bucket_bytes  the size of buckets.
    """

    forms: dict[str, Form]
    completed: int
    bucket_bytes: int


class Announcement(NamedTuple):
    """What a rank tells the others: as the arguments of agree()."""

    forms: dict[str, Form]
    completed: Sequence[str]
    bucket_bytes: int


def agree(name: str, own: Announcement, process_set: ProcessSet) -> Agreement:
    """Blocks until all ranks of the set have called it with this `name`, or have joined.

    own     the fields are: forms, this rank's gradients, in an order that is the same on all ranks; completed, the
            gradients that were completed in the last step, in the order of their completion; bucket_bytes, the size of
            buckets, of which that of the first rank holds.
    Errors  MismatchError, on all ranks, which names a parameter that differs among them.
    """
    texts = _gather(name, json.dumps(own._asdict()).encode(), process_set)
    return conclude({rank: _read(text) for rank, text in enumerate(texts) if text})


def explain(name: str, position: str, fault: str, process_set: ProcessSet) -> str:
    """Returns a text that names the faults in a round of reductions, the same on all ranks. Blocks as agree() does.

    position  the step that this rank is in. fault: a text about the fault that it has found, or "".
    """
    texts = _gather(name, json.dumps([position, fault]).encode(), process_set)
    ranks = {rank: json.loads(text) for rank, text in enumerate(texts) if text}
    faults = [f"rank {rank} of the process set: {fault}" for rank, (_, fault) in ranks.items() if fault]
    if not faults:
        positions = [f"rank {rank} is in {position}" for rank, (position, _) in ranks.items()]
        faults = [
            f"the ranks of the process set have run backward() unequally often in a step: {', '.join(positions)}; all of them must run as "
            "many backward passes between two steps, or call join()"
        ]
    return "DistributedOptimizer: " + "; ".join(faults)


def _gather(name: str, own: bytes, process_set: ProcessSet) -> list[bytes]:
    """Gathers the texts of all ranks by two allreduces, because only allreduces take zeros for a rank that has joined.
    The text of such a rank is empty.
    """
    rank = process_sets.rank_in(process_set)
    lengths = torch.zeros(process_sets.size_of(process_set), dtype=torch.int64, device="cpu")
    lengths[rank] = len(own)
    ends = [0, *allreduce_(lengths, name=f"{name}.lengths", op=Sum, process_set=process_set).cumsum(0).tolist()]
    texts = torch.zeros(ends[-1], dtype=torch.uint8, device="cpu")
    texts[ends[rank] : ends[rank + 1]] = torch.frombuffer(bytearray(own), dtype=torch.uint8)
    gathered = allreduce_(texts, name=name, op=Sum, process_set=process_set).numpy().tobytes()
    return [gathered[first:end] for first, end in zip(ends, ends[1:])]


def _read(text: bytes) -> Announcement:
    own = Announcement(**json.loads(text))
    return own._replace(forms={name: Form(*map(_tuples, form)) for name, form in own.forms.items()})


def _tuples(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def conclude(announced: Mapping[int, Announcement]) -> Agreement:
    """The conclusion from the announcements of the ranks that have not joined. The order of the gradients is that of the
    first rank on which any were completed.
    """
    ranks = sorted(announced)
    first = announced[ranks[0]].forms
    # A gradient that was completed may have been frozen since.
    orders = [[name for name in announced[rank].completed if name in first] for rank in ranks]
    completed = next(filter(None, orders), [])
    forms = {rank: announced[rank].forms for rank in ranks}
    for rank in ranks:
        _check_names(ranks[0], rank, forms)
    order = [*completed, *(name for name in first if name not in set(completed))]
    common = {name: _common(name, {rank: forms[rank][name] for rank in ranks}) for name in order}
    return Agreement(common, len(completed), announced[ranks[0]].bucket_bytes)


def _check_names(first: int, rank: int, forms: Mapping[int, dict[str, Form]]) -> None:
    for one, other in ((first, rank), (rank, first)):
        lacking = [name for name in forms[one] if name not in forms[other]]
        if lacking:
            raise MismatchError(
                f"DistributedOptimizer: the gradient of {lacking[0]} is reduced on rank {one} of the process set but not on "
                f"rank {other}; give all ranks the same parameters, with the same names and requires_grad"
            )


def _common(name: str, forms: Mapping[int, Form]) -> Form:
    first_rank, first = next(iter(forms.items()))
    for rank, form in forms.items():
        for what in ("shape", "dtype", "memory"):
            ours, theirs = getattr(first, what), getattr(form, what)
            if ours != theirs:
                raise MismatchError(
                    f"DistributedOptimizer: the ranks disagree about {name}: its {what} is {ours} on rank {first_rank} of the "
                    f"process set and {theirs} on rank {rank}"
                )
    strides = first.strides if all(form.strides == first.strides for form in forms.values()) else None
    return Form(first.shape, first.dtype, strides, max(form.sparse_dims for form in forms.values()), first.memory)


def form_of(parameter: torch.Tensor, sparse_dims: int) -> Form:
    """The form of the gradient of `parameter`."""
    strides = parameter.stride() if is_dense(parameter) else None
    return Form(tuple(parameter.shape), str(parameter.dtype), strides, sparse_dims, "GPU" if gpus.is_on_gpu(parameter) else "host")


def is_dense(tensor: torch.Tensor) -> bool:
    """True if the elements fill their memory, in any order, without gaps or overlap."""
    expected = 1
    for stride, extent in sorted(zip(tensor.stride(), tensor.shape)):
        if extent != 1 and stride != expected:
            return False
        expected *= extent
    return True
