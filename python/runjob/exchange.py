"""Exchanges that a program has already, over MPI, over a store or over the launcher's rendezvous, by which the library
meets other processes: see runjob_exchange in runjob.h.

The library calls an exchange in the thread that has called the library, which is not the program's own: see
job.call_interruptibly(). The program's thread waits meanwhile, with a time limit. An exchange over MPI runs in the
program's thread instead: see ServedHere.
"""

from __future__ import annotations

import ctypes
import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from ._library import Exchange as CFunction
from .exceptions import WaitTimeoutError

#: The longest time for which a thread waits before it checks whether the library's call has ended, in seconds.
_PATIENCE = 0.02

#: Gives each process that takes part the bytes of all, by rank. Errors  any exception.
Exchange = Callable[[bytes], Sequence[bytes]]


class Exchanger:
    """One exchange function for one call of the library.

    error  the exception that the exchange has raised, if any.
    """

    def __init__(self, exchange: Exchange, what: str, limit: float) -> None:
        """`what` names the exchange in errors; it may take `limit` seconds."""
        self.error: BaseException | None = None
        self._exchange = exchange
        self._what = what
        self._limit = limit
        self._began: float | None = None  # the time at which the exchange was called that runs now
        self._text: Any = None  # lent to the library

    def function(self) -> Any:
        """The argument `exchange` of the library's call; `context` is not used. The caller keeps it until the call has returned.
        It is not kept here, or this object, and what the exchange holds, would live until Python looks for cycles: a store
        of torch.distributed may be a server, which answers for the next one at its port.
        """
        return CFunction(self._called)

    def watch_until(self, ended: threading.Event) -> None:
        """Waits until `ended` is set, which is when the library's call has returned.

        Errors  WaitTimeoutError when one exchange takes longer than the limit. The library's call then fails as soon as
                the exchange returns.
        """
        while not ended.wait(_PATIENCE):
            began = self._began
            if began is None or time.monotonic() - began < self._limit:
                continue
            self.error = WaitTimeoutError(
                f"{self._what} has not returned after {self._limit:g} s: not all processes that take part have called it, or "
                "they do not reach each other"
            )
            raise self.error

    def raise_error(self) -> None:
        """Raises the exchange's exception, if there was one. Errors  WaitTimeoutError for a TimeoutError."""
        if isinstance(self.error, TimeoutError):
            raise WaitTimeoutError(str(self.error)) from None
        if self.error is not None:
            raise self.error

    def _called(self, context: Any, blob: int, count: int, receive: Any, to: int) -> int | None:
        self._began = time.monotonic()
        try:
            answers = [self._checked(answer) for answer in self._exchange(ctypes.string_at(blob, count))]
        except BaseException as error:  # an exception must not reach the library
            self.error = self.error or error
        finally:
            self._began = None
        if self.error is not None:
            self._text = ctypes.create_string_buffer(f"{type(self.error).__name__}: {self.error}".encode(errors="replace"))
            return ctypes.addressof(self._text)
        for rank, answer in enumerate(answers):
            receive(to, rank, answer, len(answer))
        return None

    def _checked(self, answer: Any) -> bytes:
        if not isinstance(answer, (bytes, bytearray, memoryview)):
            raise TypeError(f"{self._what} gives the bytes of each rank, and has given {answer!r}")
        return bytes(answer)


class ServedHere:
    """An exchange that runs in the thread of serve_until(), whichever thread calls this one: for MPI, whose calls may
    belong to the program's own thread.
    """

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._asked: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[Sequence[bytes] | BaseException] = queue.SimpleQueue()

    def __call__(self, blob: bytes) -> Sequence[bytes]:
        self._asked.put(blob)
        answer = self._answers.get()
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def serve_until(self, ended: threading.Event) -> None:
        """Carries out the exchanges until `ended` is set, which is when the library's call has returned. An interruption
        ends that call, and is raised here.
        """
        while not ended.is_set():
            try:
                blob = self._asked.get(timeout=_PATIENCE)
            except queue.Empty:
                continue
            try:
                self._answers.put(self._exchange(blob))
            except Exception as error:
                self._answers.put(error)
            except BaseException as error:
                self._answers.put(error)
                raise
