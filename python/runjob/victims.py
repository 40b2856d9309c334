"""The one line that a rank prints instead of a traceback when it only lost another rank, whose error runjob shows in full.

With N ranks, one error would otherwise be followed by N - 1 tracebacks that say the same.
"""

from __future__ import annotations

import os
import traceback
from typing import Mapping

from .exceptions import AbortedError, PeerLostError, WaitTimeoutError

#: 1 where runjob's launcher names the rank that failed; 0 with --verbose.
VARIABLE = "RUNJOB_FOLD_TRACEBACKS"

#: How the library's error of a stall names the limit that it has reached.
_STALL_LIMIT = "--stall-check-shutdown-time-seconds"
_PACKAGES = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def victim_line(error: BaseException, environment: Mapping[str, str]) -> str | None:
    """The line for `error`; None when its whole traceback is to be shown.

    That is the case without runjob's launcher, with --verbose, for every error that is not the loss of another rank or a
    stall, and for one that came while another error was handled.
    """
    if environment.get(VARIABLE) != "1" or not _is_of_another_rank(error):
        return None
    if error.__cause__ is not None or error.__context__ is not None:
        return None
    frames = traceback.extract_tb(error.__traceback__)
    users = [frame for frame in frames if not _is_of_library(frame.filename)] or list(frames)
    place = f"{users[-1].filename}:{users[-1].lineno} in {users[-1].name}: " if users else ""
    return f"{place}{type(error).__name__}: {error} (--verbose shows the traceback)"


def _is_of_another_rank(error: BaseException) -> bool:
    is_stall = type(error) is WaitTimeoutError and _STALL_LIMIT in str(error)
    return is_stall or type(error) in (AbortedError, PeerLostError)


def _is_of_library(path: str) -> bool:
    return path.startswith((_PACKAGES + os.sep, "<frozen ")) or "/site-packages/" in path or "/dist-packages/" in path
