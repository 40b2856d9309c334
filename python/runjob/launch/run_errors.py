"""What run() raises when its job does not end well.

    RunError         a RuntimeError: the job failed; a rank may be the cause, or a host, or a time limit
    +- RankError     the function raised an exception in a rank, or its result cannot be sent
"""

from __future__ import annotations

from typing import Any

# The name by which users know these classes: tracebacks and pickles have it, wherever this file is.
_MODULE = "runjob"


class RunError(RuntimeError):
    """The job of a run() has failed, and no results are there.

    rank, host   of the rank that failed first; None when no rank is the cause.
    exit_status  what the command `runjob` would have ended with (docs/exit-status.md).
    verdict      what --status-file has, as a dict; None when no rank could be started.
    """

    __module__ = _MODULE

    def __init__(
        self,
        message: str,
        rank: int | None = None,
        host: str | None = None,
        exit_status: int | None = None,
        verdict: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.rank = rank
        self.host = host
        self.exit_status = exit_status
        self.verdict = verdict


class RankError(RunError):
    """The function has raised an exception in rank `rank` on `host`; of several ranks, in the one that failed first.

    exception   the exception itself, or None when it could not be sent.
    traceback   its traceback as text, from that rank.
    """

    __module__ = _MODULE

    exception: BaseException | None = None
    traceback: str = ""
