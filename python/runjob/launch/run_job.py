"""Runs the program `runjob` for run(): shows its output, receives the ranks' results, and ends it on Ctrl-C.

Threads  everything runs in the caller's thread, so that output belongs to the caller's notebook cell, and an
         interruption arrives here.
"""

from __future__ import annotations

import codecs
import contextlib
import fcntl
import os
import selectors
import signal
import socket
import subprocess
from typing import Any, Callable, TextIO

from .run_results import Results
from .screen_text import ScreenText

_READ_BYTES = 1 << 20
_KEPT_COMPLAINT = 4096
_OWN_ERROR = "runjob: error: "


class _Printer:
    """Passes one of the launcher's outputs to one of Python's streams, which need not have a descriptor."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        is_terminal = getattr(stream, "isatty", lambda: False)()
        self._screen = ScreenText() if is_terminal else None
        self._tail = ""
        self.muted = False

    def feed(self, data: bytes, final: bool = False) -> None:
        text = self._decoder.decode(data, final)
        self._tail = (self._tail + text)[-_KEPT_COMPLAINT:]
        if self._screen is not None:
            text = self._screen.feed(text, final)
        if self._stream is None or self.muted or not text:
            return
        try:
            self._stream.write(text)
        except UnicodeEncodeError:  # the stream's encoding lacks a character of the ranks
            encoding = self._stream.encoding
            self._stream.write(text.encode(encoding, errors="replace").decode(encoding))
        self._stream.flush()

    def complaint(self) -> str:
        """The launcher's own error messages, if they are among its last lines."""
        lines = self._tail.splitlines()
        first = next((number for number, line in enumerate(lines) if line.startswith(_OWN_ERROR)), len(lines))
        return "\n".join(line[len(_OWN_ERROR) :] if line.startswith(_OWN_ERROR) else line for line in lines[first:])


class Job:
    """A running launcher. `command` gets two more words, which name the descriptors of the function and of our socket.

    results  the form in which the ranks send what they return: "pickle" or "json".
    """

    def __init__(
        self, command: Callable[[int, int], list[str]], environment: dict[str, str], function: int,
        stdout: TextIO | None, stderr: TextIO | None, results: str = "pickle",
    ) -> None:  # fmt: skip
        self._results = Results(results)
        self._out, self._err = _Printer(stdout), _Printer(stderr)
        self._socket, theirs = socket.socketpair()
        with theirs, contextlib.ExitStack() as copies:
            passed = []
            # If this process has closed descriptors 0 to 2, these are the launcher's streams.
            for each in (function, theirs.fileno()):
                passed.append(fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, 3))
                copies.callback(os.close, passed[-1])
            self._process = subprocess.Popen(
                command(*passed), env=environment, pass_fds=passed,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
                start_new_session=True,  # Ctrl-C in a terminal reaches only this process, which passes it on once
            )  # fmt: skip
        assert self._process.stdout is not None and self._process.stderr is not None  # they are pipes
        self._pipes = {self._process.stdout: self._out, self._process.stderr: self._err}

    def __enter__(self) -> Job:
        return self

    def __exit__(self, *_: Any) -> None:
        """Closes the socket. The launcher ends its job when the socket ends, so nothing is left behind even if this
        process is killed.
        """
        self._socket.close()
        for pipe in self._pipes:
            pipe.close()
        self._process.wait()

    def finish(self) -> list[Any]:
        """Waits for the end of the job. Returns the ranks' results. Errors  see run()."""
        cause: BaseException | None = None
        while True:
            try:
                self._pump()
                break
            except KeyboardInterrupt as interrupt:
                cause = interrupt
                self._process.send_signal(signal.SIGINT)  # a second one kills the ranks at once
            except Exception as error:  # a stream that cannot be written, or malformed bytes of the launcher
                if cause is not None:
                    raise
                cause = error
                self._out.muted = self._err.muted = True
                self._process.send_signal(signal.SIGTERM)
        if cause is not None:
            raise cause
        return self._results.take(self._process.returncode, self._err.complaint())

    def _pump(self) -> None:
        """Moves data until the launcher has ended. It may be called again after it has raised."""
        sinks: dict[Any, Any] = {**self._pipes, self._socket: self._results}
        with selectors.DefaultSelector() as selector:
            for source, sink in sinks.items():
                selector.register(source, selectors.EVENT_READ, sink)
            while True:
                for key, _ in selector.select():
                    data = os.read(key.fd, _READ_BYTES)
                    if data:
                        key.data.feed(data)
                    elif key.fileobj is self._socket:
                        return self._end()
                    else:
                        selector.unregister(key.fileobj)

    def _end(self) -> None:
        self._process.wait()
        for pipe, printer in self._pipes.items():
            os.set_blocking(pipe.fileno(), False)  # a program that outlives the launcher may keep the pipe open
            try:
                while data := os.read(pipe.fileno(), _READ_BYTES):
                    printer.feed(data)
            except BlockingIOError:
                pass
            printer.feed(b"", final=True)
