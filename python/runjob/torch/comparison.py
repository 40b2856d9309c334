"""Compares the facts of all ranks of a set: each rank announces a digest of its facts, and announces them in full only
if the digests differ.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch.nn.parameter import is_lazy

from .. import job
from ..exceptions import MismatchError
from ..objects import allgather_object
from ..process_sets import ProcessSet

_MOST_NAMED = 3  # the most names in a message, and the most versions of each


def compare(
    operation: str, facts: Mapping[str, str], objection: str, remedy: str, process_set: ProcessSet, message: Any = None
) -> dict[int, Any]:
    """The `message` of each rank of the set, by rank, if all ranks have the same facts. Blocks until all of them have
    called it.

    operation  the function that the user has called, with which errors begin. All ranks call it for the same operation.
    facts      texts by name, in the form for an error: {"fc.weight": "float32 [3, 4]"}. Their order does not count.
    objection  the reason why this rank cannot continue; empty if it can.
    remedy     the user's action that makes the facts the same.
    Errors     On all ranks alike: ValueError for an objection, MismatchError for facts that differ. Without a job ValueError for this
               rank's objection.
    """
    if objection and not job.is_initialized():
        raise ValueError(f"{operation}: {objection}")
    digest = hashlib.blake2b(repr(sorted(facts.items())).encode(), digest_size=16).digest()
    announced = allgather_object((digest, objection, message), operation, process_set)
    ranks = list(process_set.ranks or range(job.size()))
    for rank, (_, theirs, _) in zip(ranks, announced):
        if theirs:
            raise ValueError(f"{operation}: on rank {rank} {theirs}")
    if any(theirs != digest for theirs, _, _ in announced):
        _raise_differences(operation, dict(zip(ranks, allgather_object(dict(facts), f"{operation}.facts", process_set))), remedy)
    return {rank: theirs for rank, (_, _, theirs) in zip(ranks, announced)}


def _raise_differences(operation: str, facts: Mapping[int, Mapping[str, str]], remedy: str) -> None:
    """Raises an error that names the first differences, in the order of the lowest rank that has them."""
    names = dict.fromkeys(name for theirs in facts.values() for name in theirs)
    values = {name: {rank: theirs.get(name) for rank, theirs in facts.items()} for name in names}
    different = [name for name, by_rank in values.items() if len(set(by_rank.values())) > 1]
    lines = [f"{name} {_describe(values[name])}" for name in different[:_MOST_NAMED]]
    if len(different) > _MOST_NAMED:
        lines.append(f"{len(different) - _MOST_NAMED} more of {len(names)} differ")
    raise MismatchError(f"{operation}: the ranks differ: {'; '.join(lines)}. {remedy}")


def _describe(by_rank: Mapping[int, str | None]) -> str:
    """A text such as `is float32 [3] on ranks 0 and 2, float32 [4] on rank 1, missing on rank 3`."""
    groups: dict[str | None, list[int]] = {}
    for rank, value in by_rank.items():
        groups.setdefault(value, []).append(rank)
    missing = groups.pop(None, [])
    texts = [f"{value} on {_listed(ranks)}" for value, ranks in groups.items()]
    if len(texts) > _MOST_NAMED:
        others = sorted(rank for ranks in [*groups.values()][_MOST_NAMED:] for rank in ranks)
        texts[_MOST_NAMED:] = [f"otherwise on {_listed(others)}"]
    if missing:
        texts.append(f"missing on {_listed(missing)}")
    return f"is {', '.join(texts)}"


def _listed(ranks: Sequence[int]) -> str:
    """A text such as `rank 1` or `ranks 0, 2-5 and 7`."""
    runs: list[list[int]] = []
    for rank in ranks:
        if runs and rank == runs[-1][-1] + 1:
            runs[-1].append(rank)
        else:
            runs.append([rank])
    texts = [part for run in runs for part in ([f"{run[0]}-{run[-1]}"] if len(run) > 2 else map(str, run))]
    return f"{'rank' if len(ranks) == 1 else 'ranks'} {', '.join(texts[:-1])}{' and ' * (len(texts) > 1)}{texts[-1]}"


def named_tensors(values: Any, operation: str) -> dict[str, Any]:
    """The values by the names that identify them among the ranks: their own names, or else their places.

    values  a dict, or pairs (name, tensor), or tensors. Its elements need not be tensors.
    Errors  ValueError for any other value, and for a name twice.
    """
    if isinstance(values, Mapping):
        values = [(str(name), value) for name, value in values.items()]
    elif not isinstance(values, Iterable) or isinstance(values, (torch.Tensor, str)):
        raise ValueError(f"{operation} takes a dict or a list of tensors, not {type(values).__name__}")
    named: dict[str, Any] = {}
    for place, item in enumerate(values):
        name, value = item if isinstance(item, tuple) and len(item) == 2 else (None, item)
        name = f"tensor {place}" if name is None else str(name)
        if name in named:
            raise ValueError(f"{operation}: {name} is there twice; each name goes with one tensor")
        named[name] = value
    return named


def form_of(tensor: torch.Tensor) -> str:
    """The form of a tensor as text, such as `float32 [3, 4]`."""
    shape = "without a shape yet" if is_lazy(tensor) else str(list(tensor.shape))
    return f"{str(tensor.dtype).removeprefix('torch.')} {shape}"


def objection_to(value: Any) -> str:
    """The reason why `value` has no bytes that could be copied from rank to rank, with a remedy; empty if it has such
    bytes.
    """
    if not isinstance(value, torch.Tensor):
        return f"is {type(value).__name__}, not a tensor; broadcast_object() sends other values"
    if is_lazy(value):
        return "has no shape yet; run the model once before this call"
    if value.is_meta:
        return "is on the device meta and has no values; give the model memory first, with model.to_empty(device=...)"
    if is_part(value) or hasattr(value, "__tensor_flatten__"):
        return f"is a {type(value).__name__}, whose values lie in other tensors or on other ranks; give the tensors that hold them"
    if value.is_nested or value.layout is not torch.strided:
        kind = "nested" if value.is_nested else str(value.layout).removeprefix("torch.")
        return f"is not dense ({kind}); use to_dense(), or broadcast_object() to send it"
    if value.is_quantized:
        return f"is quantized ({value.dtype}); quantize after this call, or use broadcast_object() to send it"
    return ""


def is_part(tensor: torch.Tensor) -> bool:
    """True for a tensor that FSDP puts in the place of a model's parameters, which has another part of them on each rank."""
    return bool(getattr(tensor, "_is_flat_param", False))
