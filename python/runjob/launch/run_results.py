"""The results of run(): collects the records of launcher/job/call_relay.hpp by rank, and decides the outcome.

A rank's host may be less trusted than this one. Nothing that it sends is unpickled except the results, and these only
for a caller that accepts pickles.
"""

from __future__ import annotations

import base64
import json
import pickle
import struct
from typing import Any, NamedTuple

from .run_errors import RankError, RunError
from .run_rank import END, ERROR, VALUE
from .screen_text import screen_text

_RECORD = struct.Struct("<iI")  # rank, length
_VERDICT = -1


class _Report(NamedTuple):
    """run_rank.describe()'s report of an exception."""

    what: str
    traceback: str
    lost_another: bool
    pickled: bytes | None


def _read_report(data: bytes | bytearray) -> _Report:
    """Reads a report. Errors  ValueError for malformed bytes."""
    try:
        report = json.loads(data)
        exception = report["exception"]
        return _Report(
            what=screen_text(report["what"]),
            traceback=screen_text(report["traceback"]),
            lost_another=report["lost_another"] is True,
            pickled=None if exception is None else base64.b64decode(exception, validate=True),
        )
    except (ValueError, TypeError, LookupError, RecursionError) as error:
        raise ValueError(f"its report of an exception cannot be read: {error!r}") from error


class _RankOutput:
    """The data that one rank has sent so far."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.failed = False
        self.ended = False

    def add(self, kind: bytes, block: memoryview) -> None:
        """Takes a block of run_rank.py. Blocks after the end, and blocks of another kind, are ignored."""
        if self.ended:
            return
        if kind == END:
            self.ended = True
        elif kind == ERROR:
            if not self.failed:
                self.data = bytearray()  # part of a result that could not be sent as a whole
            self.failed = True
            self.data += block
        elif kind == VALUE and not self.failed:
            self.data += block


class Results:
    """Takes the bytes of the launcher's socket. In the end it returns the ranks' results, or raises the failure.

    form  "pickle" or "json", the form in which the ranks send results. With "json" nothing is ever unpickled.
    """

    def __init__(self, form: str = "pickle") -> None:
        self._form = form
        self._received = bytearray()
        self._ranks: dict[int, _RankOutput] = {}
        self.verdict: dict[str, Any] | None = None

    def feed(self, data: bytes) -> None:
        self._received += data
        while len(self._received) >= _RECORD.size:
            rank, length = _RECORD.unpack_from(self._received)
            end = _RECORD.size + length
            if len(self._received) < end:
                return
            with memoryview(self._received) as view, view[_RECORD.size : end] as record:
                self._add(rank, record)
            del self._received[:end]

    def _add(self, rank: int, record: memoryview) -> None:
        if rank == _VERDICT:
            self.verdict = json.loads(bytes(record))
        else:
            self._ranks.setdefault(rank, _RankOutput()).add(bytes(record[:1]), record[1:])

    def take(self, exit_status: int, complaint: str) -> list[Any]:
        """The result of each rank, in rank order.

        complaint  the launcher's own messages on standard error, for a job that could not be started.
        Errors     see run().
        """
        if self.verdict is None:
            message = complaint or f"the program runjob ended with status {exit_status} and without a word"
            raise ValueError(message) if exit_status == 2 else RunError(message, exit_status=exit_status)
        self._follow_generations(self.verdict)
        silent = [place["rank"] for place in self.verdict["ranks"] if not self._returned(place["rank"])]
        if exit_status != 0 or silent:
            raise self._failure(exit_status, silent)
        return [self._value(rank) for rank in range(len(self.verdict["ranks"]))]

    def _follow_generations(self, verdict: dict[str, Any]) -> None:
        """In an elastic job data is received by process number. The verdict, and all other functions of this class,
        refer to the ranks of the last generation.
        """
        if generations := verdict.get("generations"):
            processes = generations[-1]["processes"]
            self._ranks = {rank: self._ranks[process] for rank, process in enumerate(processes) if process in self._ranks}

    def _returned(self, rank: int) -> bool:
        of_rank = self._ranks.get(rank)
        return of_rank is not None and of_rank.ended and not of_rank.failed

    def _report(self, rank: int | None) -> _Report | None:
        """The rank's report of its exception. Errors  ValueError for malformed bytes."""
        of_rank = None if rank is None else self._ranks.get(rank)
        return _read_report(of_rank.data) if of_rank and of_rank.failed and of_rank.ended else None

    def _culprit(self, verdict: dict[str, Any], silent: list[int]) -> int | None:
        """The rank that failed first. For an elastic job that cannot continue, it is a rank of the last generation that
        has raised.
        """
        first: int | None = verdict["first_failed_rank"]
        if first is not None or not verdict.get("generations"):
            return first
        return next((rank for rank in silent if rank in self._ranks and self._ranks[rank].failed and self._ranks[rank].ended), None)

    def _failure(self, exit_status: int, silent: list[int]) -> RunError:
        verdict = self.verdict or {}
        rank = self._culprit(verdict, silent)
        host = None if rank is None else verdict["ranks"][rank]["host"]
        try:
            report = self._report(rank)
        except ValueError as unreadable:
            return RunError(f"{screen_text(verdict['message'])}\nrank {rank} on {host}: {unreadable}", rank, host, exit_status, verdict)
        left = [each for each in silent if verdict["ranks"][each]["outcome"] == "ok"]
        if left and (rank is None or (report and report.lost_another)):
            place = verdict["ranks"][left[0]]
            message = (
                f"rank {left[0]} on {place['host']} ended with status 0 and without a result; "
                "the function called sys.exit() or os._exit()"
            )
            return RunError(message, left[0], place["host"], exit_status or 1, verdict)
        if report is None:
            return RunError(screen_text(verdict["message"]), rank, host, exit_status, verdict)
        message = f"rank {rank} on {host} raised {report.what}\n\nThe traceback of rank {rank}:\n\n{report.traceback}"
        if verdict["first_failed_rank"] is None:
            message = f"{screen_text(verdict['message'])}; {message}"
        error = RankError(message.rstrip("\n"), rank, host, exit_status, verdict)
        error.traceback = report.traceback
        if self._form != "json":
            error._pickled = report.pickled
        return error

    def _value(self, rank: int) -> Any:
        data = self._ranks.pop(rank).data
        try:
            return json.loads(data) if self._form == "json" else pickle.loads(data)
        except Exception as error:
            host = (self.verdict or {})["ranks"][rank]["host"]
            action = "is no JSON" if self._form == "json" else "cannot be unpickled here"
            raise RunError(f"the result of rank {rank} on {host} {action}: {error!r}", rank, host) from error
