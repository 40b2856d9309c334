"""The job as every other module uses it: functions that join it with a call into the library, that leave it, and that
give this rank's place in it.

Users call basics.py instead. It adds init(), which needs process sets and communicators, and both of these need this
module.

Threads  any, but join_job() and shutdown() must not overlap each other.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
import traceback
from types import TracebackType
from typing import Any, Callable

from ._library import library
from .exceptions import AbortedError, Code, NotInitializedError, PeerLostError, from_code
from .victims import library_error, victim_line

#: The longest time that one call into the library blocks, so that Python can run signal handlers in between.
SIGNAL_INTERVAL_SECONDS = 0.2
#: The time that a rank which fails because another rank left gives that rank to end first.
_VICTIM_GRACE_SECONDS = 2.0

_init_ended: threading.Event | None = None
_generation = 0
_joins = 0
_hooks_installed = False


def check(code: int) -> None:
    """Raises the exception that belongs to `code`, with the library's text. Does nothing for OK."""
    if code != Code.OK:
        raise from_code(code, library().runjob_error_message().decode(errors="replace"))


def wait(handle: int) -> None:
    """Blocks until the library's operation `handle` is done. Signal handlers and other threads run meanwhile.

    Errors  those of the operation. KeyboardInterrupt leaves the operation in flight.
    """
    runjob_wait = library().runjob_wait
    code = runjob_wait(handle, SIGNAL_INTERVAL_SECONDS)
    while code == Code.IN_PROGRESS:
        code = runjob_wait(handle, SIGNAL_INTERVAL_SECONDS)
    check(code)


def check_all() -> None:
    """Blocks until all operations of this rank that are in flight have ended, also on its GPU. Signal handlers run
    meanwhile.

    Errors  that of the first operation that has failed, or that of the job; NotInitializedError.
    """
    code = library().runjob_check(SIGNAL_INTERVAL_SECONDS)
    while code == Code.IN_PROGRESS:
        code = library().runjob_check(SIGNAL_INTERVAL_SECONDS)
    check(code)


def join_job(join: Callable[[], int], meanwhile: Callable[[threading.Event], None] | None = None) -> None:
    """Joins the job by calling `join`, the library's function, which blocks. Does nothing if this process is already in
    a job.

    meanwhile  runs in this thread until the event that it gets is set, which is when `join` has returned.
    Errors     those of `join` and `meanwhile`; RuntimeError while an earlier call, which was interrupted, still runs.
    """
    global _generation, _init_ended
    if is_initialized():
        return
    if _init_ended is not None and not _init_ended.is_set():
        raise RuntimeError("an earlier init() of this process was interrupted, or gave up, and still waits for the other ranks")
    _install_exit_hooks()
    _init_ended = threading.Event()
    try:
        call_interruptibly(join, meanwhile, _init_ended)
    finally:
        if is_initialized():
            _generation += 1


def join_generation(meet: Callable[[], int]) -> None:
    """Elastic jobs: `meet` leaves the present generation and blocks until this process is in the next one."""
    global _generation, _init_ended
    _generation += 1  # the process sets of the previous generation are no longer registered
    _init_ended = threading.Event()
    call_interruptibly(meet, ended=_init_ended)


def shutdown() -> None:
    """Leaves the job. Operations in flight end with an error, on every rank. Does not wait for any other rank.

    Takes less than a second, and up to 5 s more while another host has not acknowledged this rank's last bytes, as
    after an interruption of the network.
    """
    if _init_ended is not None and not _init_ended.is_set():
        return  # init() was interrupted and still runs: the process is ending, and has not joined a job yet
    check(library().runjob_shutdown())


def _shutdown_at_exit() -> None:
    if _init_ended is None or _init_ended.is_set():
        check(library().runjob_shutdown_at_exit())


def start_timeline(file_path: str | os.PathLike[str], mark_cycles: bool = False, all_ranks: bool = False) -> None:
    """Begins a trace of the collectives in rank 0's file `file_path`, for Perfetto and chrome://tracing. Ends a trace
    that is being recorded.

    mark_cycles  marks each round of negotiation.
    all_ranks    adds a track for each rank. Every rank must then call this. Otherwise calls of other ranks than 0 do
                 nothing.
    Errors       NotInitializedError; ValueError when the file cannot be created.
    """
    check(library().runjob_start_timeline(os.fsencode(file_path), mark_cycles, all_ranks))


def stop_timeline() -> None:
    """Writes the rest of the trace. Does nothing without a trace.

    With all_ranks, every rank calls it. Rank 0 waits for the last records of the others, for at most one second.
    Errors  NotInitializedError.
    """
    check(library().runjob_stop_timeline())


def is_initialized() -> bool:
    """True if init() has succeeded and shutdown() has not been called since."""
    return bool(library().runjob_is_initialized() == 1)


def generation() -> int:
    """A number for the job that this process is in, for counters of operations. It changes with every init(), and in a
    forked child.
    """
    return _generation


def joins() -> int:
    """The number of times that all ranks of the job have called join() and continued. Ranks may have run different
    operations before, so counters and agreements about operations begin anew when it changes.
    """
    return _joins


def note_join() -> None:
    """Counts a join() in which all ranks have joined."""
    global _joins
    _joins += 1


def _enter_fork() -> None:
    global _generation, _init_ended
    _generation += 1  # the child is in no job, and none of its parent's calls ends in it
    _init_ended = None


os.register_at_fork(after_in_child=_enter_fork)


def rank() -> int:
    """The index of this process among all processes of the job. Errors  NotInitializedError, a ValueError; the other
    functions of this rank's place raise the same.
    """
    return _place(library().runjob_rank())


def size() -> int:
    """The number of ranks."""
    return _place(library().runjob_size())


def local_rank() -> int:
    """The index of this process among the processes on its host."""
    return _place(library().runjob_local_rank())


def local_size() -> int:
    """The number of ranks on this host."""
    return _place(library().runjob_local_size())


def cross_rank() -> int:
    """The index of this host among the hosts that have this local rank."""
    return _place(library().runjob_cross_rank())


def cross_size() -> int:
    """The number of hosts that have this local rank."""
    return _place(library().runjob_cross_size())


def is_homogeneous() -> bool:
    """True if every host has the same number of ranks."""
    rank()
    return bool(library().runjob_is_homogeneous() == 1)


def _place(value: int) -> int:
    if value < 0:
        raise NotInitializedError("runjob has not been initialized; call init() first")
    return value


def call_interruptibly(
    function: Callable[[], int],
    meanwhile: Callable[[threading.Event], None] | None = None,
    ended: threading.Event | None = None,
) -> None:
    """Runs a library call that may block for a long time in a thread of its own, so that the main thread can handle
    Ctrl-C.

    meanwhile  as for join_job().
    ended      is set when the call has returned, which may be after an interruption.
    """
    outcome: list[tuple[int, str]] = []
    ended = ended or threading.Event()

    def run() -> None:
        code = function()
        # The error message belongs to this thread.
        outcome.append((code, library().runjob_error_message().decode(errors="replace")))
        ended.set()

    threading.Thread(target=run, name="runjob call", daemon=True).start()
    if meanwhile is not None:
        meanwhile(ended)
    # Not join(): if it is interrupted, it regards the thread as ended (CPython 3.11).
    while not ended.wait(SIGNAL_INTERVAL_SECONDS):
        pass
    code, message = outcome[0]
    if code != Code.OK:
        raise from_code(code, message)


def _install_exit_hooks() -> None:
    """Installs two hooks once. One leaves the job when the interpreter ends, the other ends the job at once if an
    exception ends the program.

    The second hook is for a program with other threads. The interpreter joins them before it runs atexit functions, and
    a thread inside a collective would keep a failed rank, and with it the job, alive for ever.
    """
    global _hooks_installed
    if _hooks_installed:
        return
    _hooks_installed = True
    atexit.register(_shutdown_at_exit)
    print_exception = sys.excepthook

    def abort(kind: type[BaseException], value: BaseException, trace: TracebackType | None) -> None:
        try:
            if print_exception is sys.__excepthook__ and (line := victim_line(value, os.environ)) is not None:
                print(line, file=sys.stderr)
            else:
                print_exception(kind, value, trace)
        finally:  # a hook of the program may raise
            if not hasattr(sys, "ps1"):  # an interactive session goes on after an error
                report(kind, value)

    def report(kind: type[BaseException], value: BaseException) -> None:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError, AttributeError):  # standard error is closed, or a pipe without a reader
                pass
        if isinstance(library_error(value), (AbortedError, PeerLostError)):
            # Another rank is the cause, and may not have ended yet. runjob's launcher knows the cause; other launchers
            # name the rank that ends first. Therefore this rank lets the other one end first.
            time.sleep(_VICTIM_GRACE_SECONDS)
        else:
            library().runjob_failing(_text_of(kind, value).encode(errors="replace"))
        shutdown()

    sys.excepthook = abort


def _text_of(kind: type[BaseException], value: BaseException) -> str:
    """The type and text of an exception, such as "ValueError: the text". It also serves an exception whose str() raises."""
    try:
        return f"{kind.__name__}: {value}"
    except Exception:
        return "".join(traceback.format_exception_only(kind, value)).strip()
