"""horovod.runner.common.util.timeout: a deadline for several activities."""

from __future__ import annotations

import time


class TimeoutException(Exception):
    """The time of a Timeout is up. `message` is its text."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Timeout:
    """A deadline, whose time begins when the object is made.

    timeout  seconds.
    message  the text of the exception, in which {activity} stands for the activity that took too long.
    """

    def __init__(self, timeout: float, message: str) -> None:
        self._seconds = timeout
        self._message = message
        self._end = time.monotonic() + timeout

    def remaining(self) -> float:
        """The seconds that are left; 0 when the time is up."""
        return max(0.0, self._end - time.monotonic())

    def timed_out(self) -> bool:
        """True if the time is up."""
        return time.monotonic() > self._end

    def check_time_out_for(self, activity: str) -> None:
        """Errors  TimeoutException, which names `activity`, if the time is up."""
        if self.timed_out():
            text = self._message.format(activity=activity).rstrip()
            raise TimeoutException(f"{text}{'' if text.endswith('.') else '.'} Timeout after {self._seconds} seconds.")
