"""horovod.runner.util.threads: functions in threads of their own."""

from __future__ import annotations

import concurrent.futures
import contextlib
import threading
from collections.abc import Callable, Sequence
from typing import Any


def in_thread(
    target: Callable[..., Any], args: tuple[Any, ...] = (), name: str | None = None, daemon: bool = True, silent: bool = False
) -> threading.Thread:
    """A thread that runs target(*args), started. `silent` discards its exceptions. Errors  ValueError unless `args` is a tuple."""
    _check(args)

    def run() -> None:
        with contextlib.suppress(*([Exception] if silent else [])):
            target(*args)

    thread = threading.Thread(target=run, name=name, daemon=daemon)
    thread.start()
    return thread


def on_event(
    event: threading.Event, func: Callable[..., Any], args: tuple[Any, ...] = (), stop: threading.Event | None = None,
    check_stop_interval_s: float = 1.0, daemon: bool = True, silent: bool = False,
) -> threading.Thread:  # fmt: skip
    """A thread that runs func(*args) once `event` is set, unless `stop` is set before.

    check_stop_interval_s  the interval at which `stop` is tested, in seconds.
    Errors                 ValueError without an event, and for a thread that is not a daemon and has no `stop`.
    """
    _check(args)
    if event is None:
        raise ValueError("on_event() needs an event to wait for")
    if stop is None and not daemon:
        raise ValueError("on_event(daemon=False) needs stop=: the thread would keep the program from ending until the event is set")

    def run() -> None:
        while not event.wait(None if stop is None else check_stop_interval_s):
            if stop is not None and stop.is_set():
                return
        func(*args)

    return in_thread(run, daemon=daemon, silent=silent)


def execute_function_multithreaded(
    fn: Callable[..., Any], args_list: Sequence[Sequence[Any]], block_until_all_done: bool = True, max_concurrent_executions: int = 1000
) -> dict[int, Any] | None:
    """Calls fn(*args) for each args of the list, in threads. Returns the results by index, or None without waiting for
    them.

    Errors  that of a call, raised when all calls have ended.
    """
    count = min(max_concurrent_executions, len(args_list))
    if not block_until_all_done:
        limit = threading.Semaphore(max(count, 1))

        def run(args: Sequence[Any]) -> None:
            with limit:
                fn(*args)

        for args in args_list:
            in_thread(run, (args,))
        return None
    with concurrent.futures.ThreadPoolExecutor(max(count, 1)) as pool:
        futures = [pool.submit(fn, *args) for args in args_list]
    return {index: future.result() for index, future in enumerate(futures)}


def _check(args: Any) -> None:
    if not isinstance(args, tuple):
        raise ValueError(f"args={args!r} is no tuple; a single argument is (arg,)")
