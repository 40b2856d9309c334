"""The line that a rank prints instead of a traceback if it only lost another rank, whose error runjob shows in full.

With N ranks, one error would otherwise be followed by N - 1 tracebacks with the same content.
"""

from __future__ import annotations

import os
import re
import traceback
from typing import Mapping

from .exceptions import AbortedError, Error, PeerLostError, WaitTimeoutError

#: 1 where runjob's launcher names the rank that failed; 0 with --verbose.
VARIABLE = "RUNJOB_FOLD_TRACEBACKS"

#: The words by which the library's error of a stall names the limit that it has reached.
_STALL_LIMIT = "--stall-check-shutdown-time-seconds"
#: The text of an operation of TensorFlow that a lost rank or a stall has ended, as bindings/tensorflow/running_operation.cc writes it.
_IN_TENSORFLOW = re.compile(r"\bHorovod\w+: (AbortedError|PeerLostError|WaitTimeoutError): (.*?)(?= \[Op:|\n|$)")
_KINDS = {kind.__name__: kind for kind in (AbortedError, PeerLostError, WaitTimeoutError)}
_PACKAGES = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def library_error(error: BaseException) -> Error | None:
    """`error` as one of runjob's: itself, or the one whose text an error of TensorFlow contains. None if it is neither."""
    if isinstance(error, Error):
        return error
    if type(error).__module__.startswith("tensorflow.") and (found := _IN_TENSORFLOW.search(str(error))):
        return _KINDS[found[1]](found[2])
    return None


def victim_line(error: BaseException, environment: Mapping[str, str]) -> str | None:
    """The line for `error`, or None if its whole traceback is to be shown.

    The whole traceback is shown without runjob's launcher, with --verbose, for every error that is not the loss of
    another rank or a stall, and for one that was raised while another error was handled.
    """
    ours = library_error(error)
    if environment.get(VARIABLE) != "1" or ours is None or not _is_of_another_rank(ours):
        return None
    if error.__cause__ is not None or (error.__context__ is not None and not error.__suppress_context__):
        return None
    frames = traceback.extract_tb(error.__traceback__)
    users = [frame for frame in frames if not _is_of_library(frame)] or list(frames)
    place = f"{users[-1].filename}:{users[-1].lineno} in {users[-1].name}: " if users else ""
    return f"{place}{type(ours).__name__}: {ours} (--verbose shows the traceback)"


def _is_of_another_rank(error: Error) -> bool:
    is_stall = type(error) is WaitTimeoutError and _STALL_LIMIT in str(error)
    return is_stall or type(error) in (AbortedError, PeerLostError)


def _is_of_library(frame: traceback.FrameSummary) -> bool:
    # TensorFlow generates a function for each operation
    is_generated = frame.filename == "<string>" and frame.name.startswith("horovod_")
    path = frame.filename
    return is_generated or path.startswith((_PACKAGES + os.sep, "<frozen ")) or "/site-packages/" in path or "/dist-packages/" in path
