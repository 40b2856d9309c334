"""A torch.distributed.Work over operations of the library.

Owner    a Work holds the tensors that the library reads and writes until the operations are done, also when the program
         has dropped it: see Flights.
Threads  any. wait() blocks the calling thread in the library, without the GIL. get_future() needs a thread, which is
         started with the first future and serves all.
Errors   wait() raises those of the library, and WaitTimeoutError when the time limit passes.
"""

from __future__ import annotations

import collections
import queue
import threading
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from ... import job
from ..._library import library
from ...exceptions import Code, Error, WaitTimeoutError
from .submission import Part


class Work(dist.Work):
    """One call of torch.distributed, and the operations of the library that carry it out.

    handles   the library's handles, which this object takes over.
    parts     the operations, with their tensors; the last ones have the handles.
    outputs   the tensors of the result, for result() and futures.
    finish    copies results out of scratch memory; called once, after all operations are done.
    what      names the call in errors: "allreduce number 5 of group 0".
    seconds   the time limit of wait(); None: no limit.
    """

    def __init__(
        self,
        flights: Flights,
        handles: list[int],
        parts: Sequence[Part],
        outputs: Sequence[torch.Tensor],
        finish: Callable[[], None] | None,
        what: str,
        seconds: float | None,
    ) -> None:
        super().__init__()
        self._flights = flights
        self._handles = handles
        self._parts = parts
        self._outputs = list(outputs)
        self._finish = finish
        self._what = what
        self._seconds = seconds
        self._failure: BaseException | None = None
        self._is_done = False
        self._lock = threading.RLock()
        self._future: Any = None

    #: The call ends with its group. A message, which other ranks may never send, ends with the process set.
    ends_with_group = True

    # What programs call.

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Blocks until the operations are done. Signal handlers run meanwhile. `timeout`: at most so long, or, with zero,
        at most the group's time limit.
        """
        seconds = timeout.total_seconds() if timeout else self._seconds
        with self._lock:
            if not self._is_done and self._failure is None:
                self._complete(None if seconds is None or seconds < 0 else time.monotonic() + seconds, seconds)
        if self._failure is not None:
            raise self._failure
        return True

    def is_completed(self) -> bool:
        """True if wait() returns at once."""
        if self._is_done or self._failure is not None:
            return True
        if any(library().runjob_poll(handle) == 0 for handle in self._handles):
            return False
        with self._lock:
            if not self._is_done:
                self._complete(None, None)
        return True

    def is_success(self) -> bool:
        return self.is_completed() and self._failure is None

    def exception(self) -> BaseException | None:
        return self._failure

    def result(self) -> list[torch.Tensor]:
        self.wait()
        return self._outputs

    def synchronize(self) -> None:
        self.wait()

    def source_rank(self) -> int:
        raise RuntimeError(f"{self._what} has no source: only a recv() has one")

    def _source_rank(self) -> int:
        return self.source_rank()

    def get_future(self) -> torch.futures.Future[list[torch.Tensor]]:
        """A future of the outputs. Called by a function that another of these futures runs, it is complete when it is
        returned, because the thread that completes futures runs that function.
        """
        with self._lock:
            if self._future is None:
                root: torch.futures.Future[None] = torch.futures.Future()
                # PyTorch's C++ code sees an error only if a function of then() raises it.
                self._future = root.then(lambda _: self._value())
                _completer.complete(self, root)
            future: torch.futures.Future[list[torch.Tensor]] = self._future
            return future

    # What the package calls.

    def is_over(self) -> bool:
        """True if no operation of the library uses the tensors any more."""
        return self._is_done or all(library().runjob_poll(handle) != 0 for handle in self._handles)

    def end(self) -> None:
        """Blocks until the operations are done, whatever their outcome, or the time limit has passed."""
        try:
            self.wait()
        except Exception:  # wait() raises it again in the thread that asks
            pass

    def _value(self) -> list[torch.Tensor]:
        if self._failure is not None:
            raise self._failure
        return self._outputs

    def _complete(self, deadline: float | None, seconds: float | None) -> None:
        """Waits for all operations and takes their outcome. The caller holds the lock. When the deadline has passed, that is
        the outcome, and the operations stay in flight, with their tensors.
        """
        while self._handles:
            handle = self._handles[0]
            code = _wait(handle, deadline)
            if code == Code.IN_PROGRESS:
                self._flights.give_up(f"{self._what} is not done after {seconds:g} s")
                self._failure = WaitTimeoutError(
                    f"{self._what} is not done after {seconds:g} s, the time limit of the group: not all of its ranks have called it"
                )
                return
            try:
                job.check(code)
                self._parts[-len(self._handles)].check(handle)
            except Error as error:
                self._failure = self._failure or self._described(error)
            library().runjob_release(handle)
            del self._handles[0]
        if self._finish is not None and self._failure is None:
            self._finish()
        self._is_done = True
        self._parts, self._finish = (), None
        self._flights.remove(self)

    def attempt(self, run: Callable[[], int]) -> int:
        """Calls `run`, which runs the only operation, and returns its result. Errors  those of it, which name this call."""
        try:
            return run()
        except Error as error:
            raise self._described(error) from None

    def _described(self, failure: Error) -> Error:
        return type(failure)(f"{self._what}: {failure}")


def _wait(handle: int, deadline: float | None) -> int:
    """Waits for one operation and returns its code; IN_PROGRESS after `deadline`."""
    while True:
        interval = job.SIGNAL_INTERVAL_SECONDS
        if deadline is not None:
            interval = min(interval, max(deadline - time.monotonic(), 0.0))
        code: int = library().runjob_wait(handle, interval)
        if code != Code.IN_PROGRESS or (deadline is not None and time.monotonic() >= deadline):
            return code


class Flights:
    """The works of one group whose operations may still use their tensors."""

    def __init__(self) -> None:
        self._works: collections.OrderedDict[int, Work] = collections.OrderedDict()
        self.failure: str | None = None

    def add(self, work: Work) -> None:
        """Keeps a work, and forgets those that the program has dropped and that are over."""
        while self._works:
            oldest = next(iter(self._works.values()), None)
            if oldest is None or not oldest.is_over():
                break
            self.remove(oldest)
        self._works[id(work)] = work

    def remove(self, work: Work) -> None:
        self._works.pop(id(work), None)

    def give_up(self, reason: str) -> None:
        """Ends the group on this rank: later calls raise an error with this reason."""
        self.failure = self.failure or reason

    def end(self) -> None:
        """Blocks until all works are done that end with their group."""
        for work in list(self._works.values()):
            if work.ends_with_group:
                work.end()

    def keep(self) -> None:
        """Keeps the works that are not over as long as the process lives: the library may still use their tensors."""
        _unfinished.extend(work for work in self._works.values() if not work.is_over())


_unfinished: list[Work] = []


class _Completer:
    """The thread that completes futures."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[tuple[Work, Any]] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def complete(self, work: Work, root: torch.futures.Future[None]) -> None:
        """Sets `root` when the work is done: at once, if this is the thread that completes futures."""
        if work.is_completed() or threading.current_thread() is self._thread:
            work.end()
            root.set_result(None)
            return
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="runjob futures", daemon=True)
                self._thread.start()
        self._queue.put((work, root))

    def _run(self) -> None:
        while True:
            work, root = self._queue.get()
            work.end()
            root.set_result(None)
            del work, root


_completer = _Completer()
