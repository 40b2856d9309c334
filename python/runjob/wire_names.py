"""What operations are called among the ranks: after the user's name for them, or else after their number.

An operation's name is `<kind>.<the user's name>`. Without one, all ranks must come to the same name by themselves:

asynchronous  `<kind>.noname.<number>`, its number among the handles of the job, so that it is never in flight twice.
synchronous   `<kind>.noname.sync.<turn>`: its number among the unnamed synchronous ones of its kind in the job, modulo TURNS. Names come
              back, because the library is fast with operations that it has seen before.
"""

from __future__ import annotations

import itertools
import threading
from typing import Callable

#: Divisible by much: a program that repeats a few calls of a kind then has each of them under the same names every time.
TURNS = 60


class Turn:
    """One unnamed synchronous call, from where it takes its number until its name is free again."""

    __slots__ = ("left", "number", "over")

    def __init__(self) -> None:
        self.number: int | None = None
        self.left: Callable[[], None] | None = None  # blocks until the operation that the call has left in flight is done
        self.over: threading.Event | None = None  # of the call that waits for the name


class Turns:
    """The names of the unnamed synchronous calls of one kind, in one job.

    The name follows from the call's number alone, never from time, so that the ranks cannot disagree. A call waits until the one
    TURNS before it, whose name it takes over, has ended on this rank: with one thread it has. Nobody waits for ever by that: a
    rank that has come to a number has come to all before it, so of the operations that are not done the first can always complete.

    Threads  any.
    """

    def __init__(self, kind: str) -> None:
        self._names = [f"{kind}.noname.sync.{turn}".encode() for turn in range(TURNS)]
        self._numbers = itertools.count()
        self._running: dict[int, Turn] = {}
        self._lock = threading.RLock()  # a signal handler may call the same operation at any place

    def begin(self, turn: Turn) -> bytes:
        """The name for the next call, once it is free; end() must follow, also when this is interrupted."""
        with self._lock:
            turn.number = number = next(self._numbers)
            self._running[number] = turn
            before = self._running.get(number - TURNS)
        if before is not None:
            self._wait_for(before)
        return self._names[number % TURNS]

    def end(self, turn: Turn, was_refused: bool = False) -> None:
        """The call is over, or had not begun. One that the library has refused does not count, unless another has begun since."""
        with self._lock:
            if turn.number is not None:
                self._running.pop(turn.number, None)
                if was_refused:
                    following = next(self._numbers)
                    self._numbers = itertools.count(turn.number if following == turn.number + 1 else following)
        if turn.over is not None:
            turn.over.set()

    def leave(self, turn: Turn, wait: Callable[[], None]) -> None:
        """The call was interrupted, and its operation is in flight; `wait` blocks until that is done."""
        turn.left = wait
        with self._lock:
            over = turn.over
        if over is not None:
            over.set()

    def _wait_for(self, turn: Turn) -> None:
        with self._lock:
            if turn.number not in self._running:
                return
            turn.over = turn.over or threading.Event()
        if turn.left is None:
            turn.over.wait()
        if turn.left is not None:
            turn.left()
            self.end(turn)
