"""Operations in flight: the integers that the asynchronous functions return, and what they stand for.

A handle counts the operations of this process from 1. An operation without a name is called after its number since
init(), so unnamed ones must be started in the same order on all ranks.

Threads  any, also several on one handle.
Owner    the table keeps an operation's tensors alive until synchronize() has returned for it.
"""

from __future__ import annotations

import threading
from ctypes import byref, c_int64
from typing import Any, Callable, NamedTuple

import torch

from .. import basics
from .._library import library
from ..exceptions import Error


class _Operation(NamedTuple):
    core_handle: int
    tensors: tuple[torch.Tensor, ...]  # lent to the library
    result: Callable[[int], Any]


class _Table:
    def __init__(self) -> None:
        self.operations: dict[int, _Operation] = {}
        self._lock = threading.Lock()
        self._last = 0
        self._generation = 0
        self._before_generation = 0

    def next(self) -> tuple[int, int]:
        """A new handle, and its number among those of the job that this process is in."""
        with self._lock:
            if self._generation != basics.generation():
                self._generation = basics.generation()
                self._before_generation = self._last
            self._last += 1
            return self._last, self._last - self._before_generation


_table = _Table()


def start(
    operation: str,
    name: str | None,
    submit: Callable[[bytes, Any], int],
    tensors: tuple[torch.Tensor, ...],
    result: Callable[[int], Any],
) -> int:
    """Begins an operation and returns its handle.

    submit   the library call, given the name on the wire and where to put the library's handle.
    tensors  all that the library reads or writes until the operation is done.
    result   called once with the library's handle when it is done: what synchronize() returns.
    """
    handle, number = _table.next()
    wire_name = f"{operation}.{name}" if name else f"{operation}.noname.{number}"
    core_handle = c_int64()
    basics.check(submit(wire_name.encode(), byref(core_handle)))
    _table.operations[handle] = _Operation(core_handle.value, tensors, result)
    return handle


def synchronize(handle: int) -> Any:
    """Waits for the operation and returns its output; None for a handle that is unknown or was synchronised before.

    Errors  the operation's: HorovodInternalError and its kinds, on every rank that takes part. What a signal handler
            raises, KeyboardInterrupt for one, leaves the operation in flight.
    """
    operation = _table.operations.get(handle)
    if operation is None:
        return None
    failure = None
    try:
        basics.wait(operation.core_handle)
    except Error as error:
        failure = error
    if _table.operations.pop(handle, None) is None:
        return None  # another thread had it first
    try:
        if failure is not None:
            raise failure
        return operation.result(operation.core_handle)
    finally:
        library().runjob_release(operation.core_handle)


def poll(handle: int) -> bool:
    """Whether synchronize() would return at once. Errors  ValueError for an unknown handle."""
    operation = _table.operations.get(handle)
    done = -1 if operation is None else library().runjob_poll(operation.core_handle)
    if done < 0:
        raise ValueError(f"handle {handle} is unknown, or was synchronised before")
    return done == 1
