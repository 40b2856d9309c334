"""Divides the values of a state into arrays and plain objects, and joins them again."""

from __future__ import annotations

import collections
import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ..exceptions import InvalidArgumentError
from .array_kinds import kind_of

#: The keys and indices that lead to a value.
Path = tuple[Any, ...]


class Place(NamedTuple):
    """A placeholder for the array with this number."""

    number: int

    def __deepcopy__(self, memo: dict[int, Any]) -> Place:
        return self


def split(values: Mapping[str, Any]) -> tuple[dict[str, Any], dict[Path, Any]]:
    """The same containers with Places for the arrays, and the arrays by path. It looks into dicts, OrderedDicts, lists
    and tuples. Other objects remain, with any arrays in them.
    """
    arrays: dict[Path, Any] = {}
    places: dict[int, Place] = {}  # by id()

    def taken(value: Any, path: Path) -> Any:
        if kind_of(value) is None:
            return value
        if id(value) not in places:
            places[id(value)] = Place(len(arrays))
            arrays[path] = value
        return places[id(value)]

    return _rebuilt(dict(values), taken), arrays


def join(outline: Mapping[str, Any], arrays: Sequence[Any]) -> dict[str, Any]:
    """The inverse of split()."""
    return _rebuilt(dict(outline), lambda value, path: arrays[value.number] if type(value) is Place else value)


def paths(outline: Mapping[str, Any]) -> list[Path]:
    """The paths of the arrays, by index."""
    found: dict[int, Path] = {}

    def noted(value: Any, path: Path) -> Any:
        if type(value) is Place:
            found.setdefault(value.number, path)
        return value

    _rebuilt(dict(outline), noted)
    return [found[index] for index in range(len(found))]


def copied(outline: Mapping[str, Any]) -> dict[str, Any]:
    """A deep copy. Errors  InvalidArgumentError, a ValueError, which names a value that cannot be copied."""
    memo: dict[int, Any] = {}
    result = {}
    for name, value in outline.items():
        try:
            result[name] = copy.deepcopy(value, memo)
        except Exception as error:
            raise InvalidArgumentError(
                f"the state's {name}, of type {type(value).__name__}, cannot be copied, and so it cannot be a part of a commit: "
                f"{type(error).__name__}: {error}; keep it outside of the state"
            ) from error
    return result


def _rebuilt(tree: dict[str, Any], leaf: Callable[[Any, Path], Any]) -> dict[str, Any]:
    """New containers of the same kinds, with leaf(value, path) for all other values. A container that is in several
    places, or in itself, remains one.
    """
    known: dict[int, Any] = {}

    def rebuilt(value: Any, path: Path) -> Any:
        if id(value) in known:
            return known[id(value)]
        if type(value) in (dict, collections.OrderedDict):
            items = known[id(value)] = type(value)()
            for key, item in value.items():
                items[key] = rebuilt(item, (*path, key))
            return items
        if type(value) is list:
            elements: list[Any] = []
            known[id(value)] = elements
            elements.extend(rebuilt(item, (*path, index)) for index, item in enumerate(value))
            return elements
        if type(value) is tuple:
            return tuple(rebuilt(item, (*path, index)) for index, item in enumerate(value))
        return leaf(value, path)

    result: dict[str, Any] = rebuilt(tree, ())
    return result
