"""Operations in flight, and how each is handed to the library: started, with an integer to wait for it, or run to its end.

A handle counts the started operations of this process from 1. What an operation without a name is called is in wire_names.py:
unnamed ones must be started in the same order on all ranks, and so must those that are run.

Threads  any, also several on one handle.
Owner    an operation's tensors are kept alive until synchronize() has returned for it, or run().
"""

from __future__ import annotations

import contextlib
import functools
import threading
from ctypes import byref, c_int64
from typing import Any, Callable

import torch

from .. import basics
from .._library import library
from ..exceptions import Code, Error
from .wire_names import Turn, Turns

_OK = int(Code.OK)
_IN_PROGRESS = int(Code.IN_PROGRESS)


class Kind:
    """One of the library's collectives, by its name there: "allreduce"."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._lock = threading.RLock()
        self._turns = (-1, Turns(name))

    @functools.cached_property
    def submit(self) -> Callable[..., int]:
        """The library's function that returns at once."""
        return getattr(library(), f"runjob_{self.name}_async")

    @functools.cached_property
    def block(self) -> Callable[..., int]:
        """The library's function that returns when the operation is done."""
        return getattr(library(), f"runjob_{self.name}")

    def turns(self) -> Turns:
        """The names of unnamed synchronous calls in the job that this process is in."""
        generation = basics.generation()
        if self._turns[0] != generation:
            with self._lock:
                if self._turns[0] != generation:
                    self._turns = (generation, Turns(self.name))
        return self._turns[1]


class Call:
    """An operation, described: to be handed to start() or run(), once.

    name       the user's, if any.
    arguments  the library's, between the name and what the two functions of a kind do not share.
    tensors    all that the library reads or writes until the operation is done; None counts for nothing.
    result     called once with the library's handle when it is done: the operation's output.
    """

    __slots__ = ("arguments", "core_handle", "kind", "name", "result", "tensors")

    def __init__(
        self,
        kind: Kind,
        name: str | None,
        arguments: tuple[Any, ...],
        tensors: tuple[torch.Tensor | None, ...],
        result: Callable[[int], Any],
    ) -> None:
        self.kind = kind
        self.name = name
        self.arguments = arguments
        self.tensors = tensors
        self.result = result
        self.core_handle = 0


class _Table:
    def __init__(self) -> None:
        self.operations: dict[int, Call] = {}
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
_interrupted: dict[int, Call] = {}  # by the library's handle: calls that run() had to leave, whose operations use their tensors


def start(call: Call) -> int:
    """Begins an operation and returns its handle."""
    handle, number = _table.next()
    wire_name = f"{call.kind.name}.{call.name or f'noname.{number}'}"
    core_handle = c_int64()
    basics.check(call.kind.submit(wire_name.encode(), *call.arguments, byref(core_handle)))
    call.core_handle = core_handle.value
    _table.operations[handle] = call
    return handle


def run(call: Call) -> Any:
    """Runs an operation and returns its output. Faster than start() and synchronize(), and needs no handle.

    Errors  as synchronize(). What a signal handler raises leaves the operation in flight; its output is lost.
    """
    if call.name:
        return _run(call, f"{call.kind.name}.{call.name}".encode())
    turns, turn = call.kind.turns(), Turn()
    try:
        return _run(call, turns.begin(turn))
    finally:
        if call.core_handle:
            turns.leave(turn, functools.partial(_await, call))
        else:
            turns.end(turn)


def _run(call: Call, wire_name: bytes) -> Any:
    """run(), with the name on the wire. `call.core_handle` is the library's handle afterwards when it was interrupted."""
    core_handle = c_int64()
    try:
        # Comes back now and then for the sake of signal handlers.
        code = call.kind.block(wire_name, *call.arguments, basics.SIGNAL_INTERVAL_SECONDS, byref(core_handle))
        if code == _IN_PROGRESS:
            basics.wait(core_handle.value)
        elif code != _OK:
            basics.check(code)
        return call.result(core_handle.value)
    finally:
        if core_handle.value:
            _release(call, core_handle.value)


def _release(call: Call, core_handle: int) -> None:
    """Forgets the library's handle, unless the operation is in flight: then it takes the call's tensors with it."""
    if library().runjob_poll(core_handle) != 0:
        library().runjob_release(core_handle)
        return
    for other in list(_interrupted):
        if library().runjob_poll(other) != 0:
            _forget(other)
    call.core_handle = core_handle
    _interrupted[core_handle] = call


def _await(call: Call) -> None:
    """Blocks until the operation that an interrupted run() has left is done."""
    with contextlib.suppress(Error):  # nobody asks for its outcome any more
        basics.wait(call.core_handle)
    _forget(call.core_handle)


def _forget(core_handle: int) -> None:
    _interrupted.pop(core_handle, None)
    library().runjob_release(core_handle)


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
