"""Divides gradients into buckets. It is a function of values that are the same on all ranks, so all ranks get the same
buckets.

A bucket is one allreduce. It begins when the last of its gradients is completed, so the gradients of a bucket should be
completed one after the other. The order is that in which they were completed in the first step.

WHOLE_BYTES    gradients of at least this size do not stay in the processor's cache. Reducing them in their own memory
               is faster than copying them first.
CLOSING_BYTES  the largest size of the gradients that are completed last and that step() sends, because no work is left
               to overlap with.

The size of a bucket is an option: larger buckets begin later; smaller ones are more operations, which take processor
time from the backward pass. docs/developers/measurements.md has the measurements.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

WHOLE_BYTES = 32 << 20
CLOSING_BYTES = 64 << 10


class Entry(NamedTuple):
    """A gradient. `memory` is its dtype and device, which all gradients of a bucket share."""

    name: str
    memory: Any
    nbytes: int
    was_completed: bool  # in the step after which the plan is made


class Plan(NamedTuple):
    """Names by bucket. `closing`, which may be empty, is the bucket that step() sends."""

    buckets: list[list[str]]
    closing: list[str]


def plan(
    entries: Sequence[Entry], bucket_bytes: int, groups: int | Sequence[Sequence[str]] | None = None, closes: bool = True
) -> Plan:
    """The buckets of `entries`, which are in the order in which the gradients are completed.

    bucket_bytes  a bucket of this size takes no further gradient. It also limits the closing bucket.
    groups  the number of buckets with the same number of gradients, or the names of each bucket. Gradients that no
            group names are divided as without groups. A bucket has one kind of memory, so a group may become several
            buckets.
    closes  whether there is a closing bucket.
    """
    if isinstance(groups, int) and groups:
        return Plan([bucket for part in _parts(entries, groups) for bucket in _by_memory(part)], [])
    by_name = {entry.name: entry for entry in entries}
    listed = [[by_name[name] for name in group if name in by_name] for group in groups or ()]
    grouped = {entry.name for group in listed for entry in group}
    rest = [entry for entry in entries if entry.name not in grouped]
    closing = _closing(rest, min(CLOSING_BYTES, bucket_bytes)) if closes else []
    buckets = [bucket for group in listed for bucket in _by_memory(group)]
    buckets += _by_size([entry for entry in rest if entry.name not in closing], bucket_bytes)
    return Plan(buckets, closing)


def _parts(entries: Sequence[Entry], count: int) -> list[Sequence[Entry]]:
    """`count` parts of nearly equal length, the first ones longer; none is empty."""
    count = min(count, len(entries)) or 1
    length, longer = divmod(len(entries), count)
    firsts = [part * length + min(part, longer) for part in range(count + 1)]
    return [entries[first:last] for first, last in zip(firsts, firsts[1:])]


def _by_memory(entries: Sequence[Entry]) -> list[list[str]]:
    buckets: dict[Any, list[str]] = {}
    for entry in entries:
        buckets.setdefault(entry.memory, []).append(entry.name)
    return list(buckets.values())


def _by_size(entries: Sequence[Entry], bucket_bytes: int) -> list[list[str]]:
    """The buckets in order: full ones, and one with the rest. Gradients that were not completed are kept apart, because
    they would delay the others.
    """
    buckets: list[list[str]] = []
    open_buckets: dict[Any, tuple[int, list[str]]] = {}
    for entry in entries:
        key = (entry.memory, entry.was_completed)
        nbytes, names = open_buckets.pop(key, (0, []))
        names.append(entry.name)
        nbytes += entry.nbytes
        if nbytes >= bucket_bytes:
            buckets.append(names)
        else:
            open_buckets[key] = (nbytes, names)
    return buckets + [names for _, names in open_buckets.values()]


def _closing(entries: Sequence[Entry], most_bytes: int) -> list[str]:
    """The last gradients that were completed, as many as are small together and have one kind of memory."""
    names: list[str] = []
    nbytes = 0
    completed = [entry for entry in entries if entry.was_completed]
    for entry in reversed(completed):
        nbytes += entry.nbytes
        if nbytes > most_bytes or entry.memory != completed[-1].memory:
            break
        names.append(entry.name)
    return names[::-1]
