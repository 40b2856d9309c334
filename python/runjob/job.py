"""The job as every other module uses it: joining it with a call into the library, leaving it, and this rank's place in it.

Users call basics.py instead, which adds init(): that needs process sets and communicators, and both of them need this module.

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

#: How long one call into the library blocks at most, so that Python can run signal handlers in between.
SIGNAL_INTERVAL_SECONDS = 0.2
#: How long a rank that fails because another one left lets that one end first.
_VICTIM_GRACE_SECONDS = 2.0

_init_ended: threading.Event | None = None
_generation = 0
_joins = 0
_hooks_installed = False


def check(code: int) -> None:
    """Raises the exception that belongs to `code`, with the library's text; nothing for OK."""
    if code != Code.OK:
        raise from_code(code, library().runjob_error_message().decode(errors="replace"))


def wait(handle: int) -> None:
    """Blocks until the library's operation `handle` is done. Signal handlers and other threads run meanwhile.

    Errors  the operation's; KeyboardInterrupt leaves it in flight.
    """
    runjob_wait = library().runjob_wait
    code = runjob_wait(handle, SIGNAL_INTERVAL_SECONDS)
    while code == Code.IN_PROGRESS:
        code = runjob_wait(handle, SIGNAL_INTERVAL_SECONDS)
    check(code)


def check_all() -> None:
    """Blocks until all operations of this rank that are in flight have ended, on its GPU too. Signal handlers run meanwhile.

    Errors  that of the first operation that has failed, or of the job; NotInitializedError.
    """
    code = library().runjob_check(SIGNAL_INTERVAL_SECONDS)
    while code == Code.IN_PROGRESS:
        code = library().runjob_check(SIGNAL_INTERVAL_SECONDS)
    check(code)


def join_job(join: Callable[[], int], meanwhile: Callable[[threading.Event], None] | None = None) -> None:
    """What init() does with the library: `join` is its function, which blocks. Nothing when already in a job.

    meanwhile  runs in this thread until the event that it gets is set, which is when `join` has returned.
    """
    global _generation, _init_ended
    if is_initialized():
        return
    _install_exit_hooks()
    _init_ended = threading.Event()
    try:
        call_interruptibly(join, _init_ended, meanwhile)
    finally:
        if is_initialized():
            _generation += 1


def join_generation(meet: Callable[[], int]) -> None:
    """Elastic jobs: `meet` leaves the present generation and blocks until this process is in the next one."""
    global _generation, _init_ended
    _generation += 1  # process sets of the generation before are registered no more
    _init_ended = threading.Event()
    call_interruptibly(meet, _init_ended)


def shutdown() -> None:
    """Leaves the job; operations in flight end with an error, on every rank. Waits for no other rank.

    Takes under a second, and up to 5 more while another host has not acknowledged this rank's last bytes, as after an interruption of the
    network.
    """
    if _init_ended is not None and not _init_ended.is_set():
        return  # init() was interrupted and still runs: the process is ending, and there is nothing to leave yet
    check(library().runjob_shutdown())


def _shutdown_at_exit() -> None:
    if _init_ended is None or _init_ended.is_set():
        check(library().runjob_shutdown_at_exit())


def start_timeline(file_path: str | os.PathLike[str], mark_cycles: bool = False, all_ranks: bool = False) -> None:
    """Begins a trace of the collectives in rank 0's file `file_path`, for Perfetto and chrome://tracing; one before it ends.

    mark_cycles  marks each round of negotiation.
    all_ranks    a track for each rank; then every rank must call this. Otherwise calls of other ranks than 0 do nothing.
    Errors       NotInitializedError; ValueError when the file cannot be created.
    """
    check(library().runjob_start_timeline(os.fsencode(file_path), mark_cycles, all_ranks))


def stop_timeline() -> None:
    """Writes what is left of the trace. Does nothing when there is none.

    With all_ranks, every rank calls it; rank 0 waits for the others' last records, for a second at most.
    Errors  NotInitializedError.
    """
    check(library().runjob_stop_timeline())


def is_initialized() -> bool:
    """Whether init() has succeeded and shutdown() has not been called since."""
    return bool(library().runjob_is_initialized() == 1)


def generation() -> int:
    """Which job this process is in, for what counts operations: changes with every init(), and in a forked child."""
    return _generation


def joins() -> int:
    """How often all ranks of the job have joined and gone on. Ranks may have done different operations before; what is counted, or
    agreed on, for operations starts anew then.
    """
    return _joins


def note_join() -> None:
    """All ranks have joined."""
    global _joins
    _joins += 1


def _enter_fork() -> None:
    global _generation
    _generation += 1  # the child is in no job, and none of its parent's calls ends in it


os.register_at_fork(after_in_child=_enter_fork)


def rank() -> int:
    """This process's index among all. Errors  NotInitializedError, a ValueError, as for all places."""
    return _place(library().runjob_rank())


def size() -> int:
    """The number of ranks."""
    return _place(library().runjob_size())


def local_rank() -> int:
    """This process's index among those on its host."""
    return _place(library().runjob_local_rank())


def local_size() -> int:
    """The number of ranks on this host."""
    return _place(library().runjob_local_size())


def cross_rank() -> int:
    """This host's index among the hosts that have this local rank."""
    return _place(library().runjob_cross_rank())


def cross_size() -> int:
    """The number of hosts that have this local rank."""
    return _place(library().runjob_cross_size())


def is_homogeneous() -> bool:
    """Whether every host has the same number of ranks."""
    rank()
    return bool(library().runjob_is_homogeneous() == 1)


def _place(value: int) -> int:
    if value < 0:
        raise NotInitializedError("runjob has not been initialized; call init() first")
    return value


def call_interruptibly(
    function: Callable[[], int],
    ended: threading.Event | None = None,
    meanwhile: Callable[[threading.Event], None] | None = None,
) -> None:
    """Runs a library call that may block for long in a thread of its own: the main thread stays able to take Ctrl-C.

    ended      is set when the call has returned, which may be after an interruption.
    meanwhile  as of join_job().
    """
    outcome: list[tuple[int, str]] = []
    ended = ended or threading.Event()

    def run() -> None:
        code = function()
        outcome.append((code, library().runjob_error_message().decode(errors="replace")))  # the text is this thread's
        ended.set()

    threading.Thread(target=run, name="runjob call", daemon=True).start()
    if meanwhile is not None:
        meanwhile(ended)
    while not ended.wait(SIGNAL_INTERVAL_SECONDS):  # not join(): interrupted, it takes the thread for ended (CPython 3.11)
        pass
    code, message = outcome[0]
    if code != Code.OK:
        raise from_code(code, message)


def _install_exit_hooks() -> None:
    """Once: leave the job when the interpreter ends, and at once when an exception ends the program.

    The second is for a program that has other threads: the interpreter joins them before it runs atexit functions, and
    one that is inside a collective would keep a failed rank, and with it the job, alive for ever.
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
            except (OSError, ValueError, AttributeError):  # closed, or a pipe without a reader: nobody to tell
                pass
        if isinstance(library_error(value), (AbortedError, PeerLostError)):
            # Another rank is the cause, and may still be on its way out. Our launcher knows that; others name the rank
            # that ends first, and stop this one then.
            time.sleep(_VICTIM_GRACE_SECONDS)
        else:
            library().runjob_failing(_text_of(kind, value).encode(errors="replace"))
        shutdown()

    sys.excepthook = abort


def _text_of(kind: type[BaseException], value: BaseException) -> str:
    """"ValueError: the text", also where str() of the exception raises."""
    try:
        return f"{kind.__name__}: {value}"
    except Exception:
        return "".join(traceback.format_exception_only(kind, value)).strip()
