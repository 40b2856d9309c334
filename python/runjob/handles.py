"""Operations in flight, and how each is handed to the library: started, with an integer to wait for it, or run to its end.

A handle counts the started operations of this process from 1. What an operation without a name is called is in wire_names.py:
unnamed ones must be started in the same order on all ranks of their process set, and so must those that are run.

Threads  any, also several on one handle.
Owner    an operation's tensors are kept alive until synchronize() has returned for it, or run().
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Mapping
from ctypes import byref, c_int64
from typing import Any, Callable

from . import job, process_sets
from ._library import library
from .exceptions import Code, Error, InvalidArgumentError
from .wire_names import Turn, Turns

_OK = int(Code.OK)
_IN_PROGRESS = int(Code.IN_PROGRESS)


class Kind:
    """What is called alike among the ranks: "allreduce", "grouped_allreduce". Unnamed ones are counted for each kind and set."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._lock = threading.RLock()
        self._turns: dict[int, tuple[tuple[int, int], Turns]] = {}

    def turns(self, process_set: int = 0) -> Turns:
        """The names of unnamed synchronous calls in a process set of the job that this process is in."""
        epoch = process_sets.epoch(process_set)
        known = self._turns.get(process_set)
        if known is None or known[0] != epoch:
            with self._lock:
                known = self._turns.get(process_set)
                if known is None or known[0] != epoch:
                    known = self._turns[process_set] = (epoch, Turns(self.name))
        return known[1]


class Collective(Kind):
    """One of the library's; `function`: what it is called there, when that is another name."""

    def __init__(self, name: str, function: str | None = None) -> None:
        super().__init__(name)
        self._function = f"runjob_{function or name}"

    @functools.cached_property
    def submit(self) -> Callable[..., int]:
        """The library's function that returns at once."""
        function: Callable[..., int] = getattr(library(), f"{self._function}_async")
        return function

    @functools.cached_property
    def block(self) -> Callable[..., int]:
        """The library's function that returns when the operation is done."""
        function: Callable[..., int] = getattr(library(), self._function)
        return function


class Call:
    """An operation of the library, described: to be handed to start() or run(). Again only after its end, and where `result` copies nothing.

    name       the user's, if any.
    arguments  the library's, between the name and what the two functions of a kind do not share.
    tensors    all that the library reads or writes until the operation is done; None counts for nothing.
    process_set  the library's number.
    result     called once with the library's handle when it is done: the operation's output.
    """

    __slots__ = ("arguments", "core_handle", "kind", "name", "process_set", "result", "tensors")

    def __init__(
        self,
        kind: Collective,
        name: str | None,
        arguments: tuple[Any, ...],
        tensors: tuple[Any, ...],
        result: Callable[[int], Any],
        process_set: int = 0,
    ) -> None:
        self.kind = kind
        self.name = name
        self.arguments = arguments
        self.tensors = tensors
        self.result = result
        self.process_set = process_set
        self.core_handle = 0  # the library's, while there is one

    def submit(self, wire_name: bytes) -> None:
        core_handle = c_int64()
        try:
            job.check(self.kind.submit(wire_name, *self.arguments, byref(core_handle)))
        finally:
            self.core_handle = core_handle.value

    def block(self, wire_name: bytes) -> Any:
        core_handle = c_int64()
        try:
            # Comes back now and then for the sake of signal handlers.
            code = self.kind.block(wire_name, *self.arguments, job.SIGNAL_INTERVAL_SECONDS, byref(core_handle))
            if code == _IN_PROGRESS:
                job.wait(core_handle.value)
            elif code != _OK:
                job.check(code)
            return self.result(core_handle.value)
        finally:
            if core_handle.value:
                self.core_handle = core_handle.value
                self.release()

    def handle(self, number: int) -> int:
        """Returns the handle that start() gives out: `number`, or another int that is equal."""
        return number

    def poll(self) -> int:
        return int(library().runjob_poll(self.core_handle))

    def wait(self) -> None:
        job.wait(self.core_handle)

    def take(self) -> Any:
        return self.result(self.core_handle)

    def release(self) -> None:
        core_handle = self.core_handle
        if core_handle == 0:
            return
        if library().runjob_poll(core_handle) != 0:
            library().runjob_release(core_handle)
            self.core_handle = 0
            return
        for other in list(_left):
            if library().runjob_poll(other) != 0:
                _forget(other)
        _left[core_handle] = self


class _Table:
    def __init__(self) -> None:
        self.operations: dict[int, Call] = {}
        self._lock = threading.Lock()
        self._last = 0
        self._counts: dict[int, tuple[tuple[int, int], int]] = {}

    def next(self, process_set: int) -> tuple[int, int]:
        """A new handle, and its number among those of a process set of the job that this process is in."""
        epoch = process_sets.epoch(process_set)
        with self._lock:
            counted, count = self._counts.get(process_set, (epoch, 0))
            count = count + 1 if counted == epoch else 1
            self._counts[process_set] = (epoch, count)
            self._last += 1
            return self._last, count

    def give_back(self, process_set: int, number: int) -> None:
        """The operation with this number was not begun: it does not count, unless another has come since."""
        with self._lock:
            epoch, count = self._counts[process_set]
            if count == number:
                self._counts[process_set] = (epoch, number - 1)


_table = _Table()
_left: dict[int, Call] = {}  # by the library's handle: calls nobody waits for any more, whose operations use their tensors


def in_flight() -> Mapping[int, Call]:
    """The operations that have been started and not yet synchronized, by handle."""
    return _table.operations


def start(operation: Call) -> int:
    """Begins an operation and returns its handle."""
    handle, number = _table.next(operation.process_set)
    try:
        operation.submit(f"{operation.kind.name}.{operation.name or f'noname.{number}'}".encode())
    except BaseException:
        if not operation.core_handle:
            _table.give_back(operation.process_set, number)
        operation.release()
        raise
    _table.operations[handle] = operation
    return operation.handle(handle)


def abandon(handle: int) -> Call | None:
    """Takes an operation for which nobody waits any more out of those in flight; None when it was synchronised."""
    return _table.operations.pop(handle, None)


def run(operation: Call) -> Any:
    """Runs an operation and returns its output. Faster than start() and synchronize(), and needs no handle.

    Errors  as synchronize(). What a signal handler raises leaves the operation in flight; its output is lost.
    """
    if operation.name:
        return operation.block(f"{operation.kind.name}.{operation.name}".encode())
    turns, turn, was_refused = operation.kind.turns(operation.process_set), Turn(), False
    try:
        return operation.block(turns.begin(turn))
    except InvalidArgumentError:
        was_refused = True
        raise
    finally:
        if operation.core_handle:
            turns.leave(turn, functools.partial(_await, operation))
        else:
            turns.end(turn, was_refused)


def _await(call: Call) -> None:
    """Blocks until the operation that an interrupted run() has left is done."""
    with contextlib.suppress(Error):  # nobody asks for its outcome any more
        job.wait(call.core_handle)
    _forget(call.core_handle)


def _forget(core_handle: int) -> None:
    _left.pop(core_handle, None)
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
        operation.wait()
    except Error as error:
        failure = error
    if _table.operations.pop(handle, None) is None:
        return None  # another thread had it first
    try:
        if failure is not None:
            raise failure
        return operation.take()
    finally:
        operation.release()


def poll(handle: int) -> bool:
    """Whether synchronize() would return at once. Errors  ValueError for an unknown handle."""
    operation = _table.operations.get(handle)
    done = -1 if operation is None else operation.poll()
    if done < 0:
        raise ValueError(f"handle {handle} is unknown, or was synchronised before")
    return done == 1
