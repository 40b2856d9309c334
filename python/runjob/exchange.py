"""Exchanges that a program has already, over MPI, over a store or over the launcher's rendezvous, by which the library
meets other processes: see runjob_exchange in runjob.h.

The library calls an exchange in the thread that has called the library. MPI and signal handlers need the program's own
thread: so the library's call runs in another one, and the program's thread carries out the exchanges meanwhile.
"""

from __future__ import annotations

import ctypes
import queue
import threading
from collections.abc import Callable, Sequence
from typing import Any

from ._library import Exchange as CFunction

#: The longest time for which serve_until() waits before it checks whether the library's call has ended, in seconds.
_PATIENCE = 0.02

#: Gives each process that takes part the blobs of all, by rank. Errors  any exception.
Exchange = Callable[[bytes], Sequence[bytes]]


class Exchanger:
    """One exchange function for one call of the library.

    function  the argument `exchange` of that call; `context` is not used.
    error     the exception that the exchange has raised, if any.
    Owner     it must outlive the call.
    """

    def __init__(self, exchange: Exchange) -> None:
        self.function = CFunction(self._called)
        self.error: BaseException | None = None
        self._exchange = exchange
        self._asked: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[list[bytes] | None] = queue.SimpleQueue()
        self._text: Any = None  # lent to the library

    def serve_until(self, ended: threading.Event) -> None:
        """Carries out the exchanges until `ended` is set, which is when the library's call has returned. An exception of
        the exchange ends the library's call, and is raised by raise_error(); an interruption is raised here.
        """
        while not ended.is_set():
            try:
                blob = self._asked.get(timeout=_PATIENCE)
            except queue.Empty:
                continue
            answer: list[bytes] | None = None
            try:
                answer = list(self._exchange(blob))
            except Exception as error:
                self.error = error
            finally:
                self._answers.put(answer)

    def raise_error(self) -> None:
        """Raises the exchange's exception, if there was one."""
        if self.error is not None:
            raise self.error

    def _called(self, context: Any, blob: int, count: int, receive: Any, to: int) -> int | None:
        self._asked.put(ctypes.string_at(blob, count))
        answers = self._answers.get()
        if answers is None:
            self._text = ctypes.create_string_buffer(f"{type(self.error).__name__}: {self.error}".encode(errors="replace"))
            return ctypes.addressof(self._text)
        for rank, answer in enumerate(answers):
            receive(to, rank, answer, len(answer))
        return None
