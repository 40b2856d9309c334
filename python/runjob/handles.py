"""Operations in flight. An operation is started, which gives an integer to wait with, or it is run to its end.

Handles are integers from 1, in the order in which this process starts operations. wire_names.py names operations that
the user has not named: these must be started in the same order on all ranks of their process set. The same holds for
those that are run.

Threads  any. Several threads may use one handle.
Owner    an operation's tensors are kept alive until synchronize() or run() has returned for it.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Mapping
from ctypes import addressof, byref, c_int64, sizeof
from typing import Any, Callable

from . import job, process_sets
from ._library import HOST_MEMORY, KINDS, Operation, library, set_operation
from .exceptions import Code, Error, InvalidArgumentError
from .reduce_ops import Sum
from .wire_names import Turn, Turns

_OK = int(Code.OK)
_IN_PROGRESS = int(Code.IN_PROGRESS)
_SIZE = sizeof(Operation)


class Kind:
    """The prefix of an operation's name among the ranks, such as "allreduce" or "grouped_allreduce". Unnamed operations
    are counted for each kind and set.
    """

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
    """A kind of operation that the library has, on one tensor or on a group of them."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        single = name.removeprefix("grouped_")
        self.number = KINDS[single]  # a runjob_kind
        self.is_group = single != name


class Call:
    """A description of an operation for start() or run(). It may be used again only after the operation's end, and only
    if `result` copies nothing.

    name       the user's name for the operation, if any.
    described  the tensor, or the array of the group's tensors, in the library's form; None if the kind has none.
    tensors    all tensors that the library reads or writes until the operation is done, for a group also the shapes that
               `described` has the addresses of. None is ignored.
    result     called once with the library's handle when the operation is done. Returns its output.
    process_set  the library's number of the set.
    The rest are fields of runjob_operation that the kind uses; `splits` is an array of c_int64.
    """

    __slots__ = ("_described", "core_handle", "kind", "name", "operation", "process_set", "result", "tensors")

    def __init__(
        self, kind: Collective, name: str | None, described: Any, tensors: tuple[Any, ...], result: Callable[[int], Any],
        process_set: int = 0, op: int = Sum, prescale: float = 1.0, postscale: float = 1.0, compression: int = 0, root: int = 0,
        splits: Any = None,
    ) -> None:  # fmt: skip
        self.kind = kind
        self.name = name
        self.tensors = tensors
        self.result = result
        self.process_set = process_set
        self.core_handle = 0  # the library's handle, while there is one
        self._described = described, splits  # the operation has their addresses
        count = 0 if described is None else len(described) if kind.is_group else 1
        self.operation = operation = Operation()
        set_operation(
            operation, 0, _SIZE, 0, kind.number, count, addressof(described) if count else 0, kind.is_group, op, prescale,
            postscale, compression, root, process_set, len(splits) if splits else 0, addressof(splits) if splits else 0,
            HOST_MEMORY, 0, 0,
        )  # fmt: skip

    def submit(self, wire_name: bytes) -> None:
        self.operation.name = wire_name
        core_handle = c_int64()
        try:
            job.check(library().runjob_submit(byref(self.operation), byref(core_handle)))
        finally:
            self.core_handle = core_handle.value

    def block(self, wire_name: bytes) -> Any:
        self.operation.name = wire_name
        core_handle = c_int64()
        try:
            # Returns after an interval, so that signal handlers run.
            code = library().runjob_run(byref(self.operation), job.SIGNAL_INTERVAL_SECONDS, byref(core_handle))
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
        """Returns the handle that start() returns to its caller: `number`, or another int that is equal."""
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
        """A new handle, and its number among the handles of a process set in the job that this process is in."""
        epoch = process_sets.epoch(process_set)
        with self._lock:
            counted, count = self._counts.get(process_set, (epoch, 0))
            count = count + 1 if counted == epoch else 1
            self._counts[process_set] = (epoch, count)
            self._last += 1
            return self._last, count

    def give_back(self, process_set: int, number: int) -> None:
        """Takes back the number of an operation that was not begun, so that it is not counted, unless a later number
        has been given out.
        """
        with self._lock:
            epoch, count = self._counts[process_set]
            if count == number:
                self._counts[process_set] = (epoch, number - 1)


_table = _Table()
_left: dict[int, Call] = {}  # calls that were abandoned, by the library's handle: their operations still use their tensors


def in_flight() -> Mapping[int, Call]:
    """The operations that have been started and not yet synchronized, by handle."""
    return _table.operations


def start(operation: Call) -> int:
    """Starts an operation and returns its handle."""
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
    """Takes an operation that no thread waits for any more out of those in flight. Returns None if it was synchronised."""
    return _table.operations.pop(handle, None)


def run(operation: Call) -> Any:
    """Runs an operation and returns its output. Faster than start() and synchronize(), and needs no handle.

    Errors  as synchronize(). If a signal handler raises, the operation stays in flight, and its output is lost.
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
    """Blocks until an operation is done whose run() was interrupted."""
    with contextlib.suppress(Error):  # no thread asks for its outcome any more
        job.wait(call.core_handle)
    _forget(call.core_handle)


def _forget(core_handle: int) -> None:
    _left.pop(core_handle, None)
    library().runjob_release(core_handle)


def synchronize(handle: int) -> Any:
    """Waits for the operation and returns its output; None for a handle that is unknown or was synchronised before.

    Errors  those of the operation: HorovodInternalError and its kinds, on every rank that takes part. If a signal
    handler raises, KeyboardInterrupt for example, the operation stays in flight.
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
        return None  # another thread has synchronized it
    try:
        if failure is not None:
            raise failure
        return operation.take()
    finally:
        operation.release()


def poll(handle: int) -> bool:
    """True if synchronize() would return at once. Errors  ValueError for an unknown handle."""
    operation = _table.operations.get(handle)
    done = -1 if operation is None else operation.poll()
    if done < 0:
        raise ValueError(f"handle {handle} is unknown, or was synchronised before")
    return done == 1
