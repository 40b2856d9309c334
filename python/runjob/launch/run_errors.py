"""The exceptions of run() for a job that does not end well.

    RunError         a RuntimeError: the job failed; a rank may be the cause, or a host, or a time limit
    +- RankError     the function raised an exception in a rank, or its result cannot be sent
"""

from __future__ import annotations

import contextlib
import pickle
from typing import Any

# The module by which users know these classes. Tracebacks and pickles name it, so it does not depend on this file's
# place.
_MODULE = "runjob"


class RunError(RuntimeError):
    """The job of a run() has failed, and has no results.

    rank, host   of the rank that failed first; None if no rank is the cause.
    exit_status  the exit status with which the command `runjob` would have ended (docs/exit-status.md).
    verdict      the contents of --status-file, as a dict; None if no rank could be started.
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
    """The function has raised an exception in rank `rank` on `host`. If it has raised in several ranks, this is the one
    that failed first.

    traceback   the text of its traceback, from that rank.
    """

    __module__ = _MODULE

    traceback: str = ""
    _pickled: bytes | None = None
    _exception: BaseException | None = None

    @property
    def exception(self) -> BaseException | None:
        """The exception itself. None if it could not be sent, if it cannot be unpickled here, or with results="json".

        It is unpickled when it is first read. A pickle is code: read it only if you trust the rank's host like this
        one.
        """
        if self._pickled is not None:
            pickled, self._pickled = self._pickled, None
            with contextlib.suppress(Exception):  # the exception's module may be missing here
                self._exception = pickle.loads(pickled)
        return self._exception
