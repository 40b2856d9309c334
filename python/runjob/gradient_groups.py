"""The groups of gradients that are reduced as one operation, for all frameworks whose gradients come as a list."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable, Sequence
from typing import Any


def given_groups(num_groups: int, groups: Any) -> Any:
    """The groups that the user has given: a number of groups, lists of variables, or None. `num_groups` is the older
    name. Errors  ValueError.
    """
    if num_groups != 0:
        warnings.warn("num_groups= is deprecated: use groups=", DeprecationWarning, stacklevel=5)
        groups = num_groups if groups is None else groups
    if groups is not None and not isinstance(groups, (list, tuple)) and (not isinstance(groups, int) or groups < 0):
        raise ValueError(f"groups={groups!r}: give a number of groups, or a list of lists of variables")
    return groups or None


def grouped(
    places: Sequence[int], sizes: Sequence[int], identities: Sequence[Hashable], groups: int | Sequence[Sequence[Hashable]] | None,
    bucket_bytes: int,
) -> Iterable[list[int]]:
    """The groups of gradients that are reduced as one operation, as lists of places.

    places      the places of the gradients in the user's list.
    sizes       the bytes of each gradient, by place.
    identities  those of the gradients' variables, by place. `groups` has lists of them, or is the number of groups.
                Gradients that it does not name are grouped by size.
    bucket_bytes  a group of this size takes no further gradient.
    """
    if isinstance(groups, int):
        yield from _split(places, groups)
        return
    number_of = {identity: number for number, group in enumerate(groups or ()) for identity in group}
    numbers = {place: number_of.get(identities[place]) for place in places}
    for number in range(len(groups or ())):
        group = [place for place in places if numbers[place] == number]
        if group:
            yield group
    yield from _by_size([place for place in places if numbers[place] is None], sizes, bucket_bytes)


def _by_size(places: Sequence[int], sizes: Sequence[int], bucket_bytes: int) -> Iterable[list[int]]:
    """Groups from the last gradient on, which is computed first."""
    group: list[int] = []
    filled = 0
    for place in reversed(places):
        group.append(place)
        filled += sizes[place]
        if filled >= bucket_bytes:
            yield group
            group, filled = [], 0
    if group:
        yield group


def _split(places: Sequence[int], count: int) -> Iterable[list[int]]:
    """At most `count` lists of about the same length."""
    size, more = divmod(len(places), count)
    first = 0
    for number in range(min(count, len(places))):
        last = first + size + (number < more)
        yield list(places[first:last])
        first = last
