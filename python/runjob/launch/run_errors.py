"""What run() raises when its job does not end well.

    RunError         a RuntimeError: the job failed; a rank may be the cause, or a host, or a time limit
    +- RankError     the function raised an exception in a rank, or its result cannot be sent
"""

from __future__ import annotations

import contextlib
import pickle
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

    traceback   its traceback as text, from that rank.
    """

    __module__ = _MODULE

    traceback: str = ""
    _pickled: bytes | None = None
    _exception: BaseException | None = None

    @property
    def exception(self) -> BaseException | None:
        """The exception itself, or None when it could not be sent or cannot be unpickled here, or with results="json".

        It is unpickled when it is read first, and a pickle is code: read it only if the rank's host is trusted like this one.
        """
        if self._pickled is not None:
            pickled, self._pickled = self._pickled, None
            with contextlib.suppress(Exception):  # an exception of a module that is not here
                self._exception = pickle.loads(pickled)
        return self._exception
