"""The names of operations among the ranks. They come from the names that users give, or else from numbers.

An operation's name is `<kind>.<the user's name>`. Without a user's name, all ranks must derive the same name by
themselves:

asynchronous  `<kind>.noname.<number>`. The number is that among the handles of the job, so that the name is never in
              flight twice.
synchronous   `<kind>.noname.sync.<turn>`. The turn is the number among the unnamed synchronous operations of its kind
              in the job, modulo TURNS. Names recur, because the library is fast with operations that it has seen
              before.
"""

from __future__ import annotations

import itertools
import threading
from typing import Callable

#: A number with many divisors: a program that repeats a few calls of a kind then has each of them under the same names
#: every time.
TURNS = 60


class Turn:
    """One unnamed synchronous call, from the time when it takes its number until its name is free again."""

    __slots__ = ("left", "number", "over")

    def __init__(self) -> None:
        self.number: int | None = None
        # Blocks until the operation is done that an interrupted call has left in flight
        self.left: Callable[[], None] | None = None
        self.over: threading.Event | None = None  # the event of the call that waits for the name


class Turns:
    """The names of the unnamed synchronous calls of one kind, in one job.

    The name follows from the call's number alone, never from time, so that the ranks cannot disagree. A call takes the
    name of the call TURNS numbers before it, and waits until that has ended on this rank. With one thread it has always
    ended. No call waits for ever: a rank that has reached a number has reached all earlier ones, so the first of the
    operations that are not done can always complete.

    Threads  any.
    """

    def __init__(self, kind: str) -> None:
        self._names = [f"{kind}.noname.sync.{turn}".encode() for turn in range(TURNS)]
        self._numbers = itertools.count()
        self._running: dict[int, Turn] = {}
        self._lock = threading.RLock()  # a signal handler may call the same operation at any place

    def begin(self, turn: Turn) -> bytes:
        """Returns the name for the next call when the name is free. end() must follow, also if this is interrupted."""
        with self._lock:
            turn.number = number = next(self._numbers)
            self._running[number] = turn
            before = self._running.get(number - TURNS)
        if before is not None:
            self._wait_for(before)
        return self._names[number % TURNS]

    def end(self, turn: Turn, was_refused: bool = False) -> None:
        """Ends the call, also one that was not begun. A call that the library has refused is not counted, unless
        another one has begun since.
        """
        with self._lock:
            if turn.number is not None:
                self._running.pop(turn.number, None)
                if was_refused:
                    following = next(self._numbers)
                    self._numbers = itertools.count(turn.number if following == turn.number + 1 else following)
        if turn.over is not None:
            turn.over.set()

    def leave(self, turn: Turn, wait: Callable[[], None]) -> None:
        """Notes that the call was interrupted and its operation is in flight. `wait` blocks until the operation is done."""
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
