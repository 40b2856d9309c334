"""Several calls that are one to the user: submitted together, waited for together, one handle.

A group's operations are called `<the group's name>_<i>of<n>`, i from 1. They are independent of each other for the library, which
negotiates in one round what has been submitted by then: dtypes may differ, and one may fail while the others do not.

Threads  any; two groups are never submitted at once, so that the operations of one come one after the other.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Sequence
from typing import Any

from ..exceptions import Error, InvalidArgumentError
from .handles import Call, Kind

_lock = threading.RLock()  # a signal handler may submit another one
_groups: weakref.WeakValueDictionary[tuple[bytes, int], Group] = weakref.WeakValueDictionary()  # by name and number of calls


def _enter_fork() -> None:
    global _lock
    _lock = threading.RLock()  # the thread that has it may not be in the child


os.register_at_fork(after_in_child=_enter_fork)


class Group:
    """An Operation whose output is the list of its calls' outputs. `calls`: at least one, without names."""

    __slots__ = ("__weakref__", "calls", "kind", "name")

    def __init__(self, kind: Kind, name: str | None, calls: Sequence[Call]) -> None:
        self.kind = kind
        self.name = name
        self.calls = calls

    def submit(self, wire_name: bytes) -> None:
        """Errors  InvalidArgumentError, a ValueError, while a group of that name and size is in flight, before anything has begun.
        When the library refuses one of the calls, those before it are in flight, and those after it are not submitted.
        """
        count = len(self.calls)
        with _lock:
            namesake = _groups.get((wire_name, count))
            if namesake is not None and namesake.is_in_flight():
                raise InvalidArgumentError(
                    f"{wire_name.decode()}: a group of this name is still in flight; synchronize it first, or use another name"
                )
            _groups[wire_name, count] = self
            for number, call in enumerate(self.calls, 1):
                call.submit(b"%b_%dof%d" % (wire_name, number, count))

    def block(self, wire_name: bytes) -> list[Any]:
        try:
            self.submit(wire_name)
            self.wait()
            return self.take()
        finally:
            self.release()

    def is_in_flight(self) -> bool:
        return any(call.poll() == 0 for call in self.calls)

    def poll(self) -> int:
        return min(call.poll() for call in self.calls)

    def wait(self) -> None:
        """Errors  the first call's that failed, when all are done."""
        failure = None
        for call in self.calls:
            try:
                call.wait()
            except Error as error:
                failure = failure or error
        if failure is not None:
            raise failure

    def take(self) -> list[Any]:
        return [call.take() for call in self.calls]

    def release(self) -> None:
        for call in self.calls:
            call.release()

    def left(self) -> tuple[Call, ...]:
        return tuple(call for call in self.calls if call.core_handle)
