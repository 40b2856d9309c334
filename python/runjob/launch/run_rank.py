"""A rank of run(). run_command.py has the command that calls main(). The rank fetches the function from the launcher,
calls it, and sends the outcome.

All data passes through the rendezvous of the agent on this host. It is a Unix socket that only processes of the same
user can use. The rank checks that the socket belongs to that user before it unpickles any answer.
launcher/job/call_relay.hpp has the requests.

A rank sends blocks, each of which begins with its kind: VALUE, bytes of the result, a pickle or JSON as
run(results=...) demands; ERROR, bytes of describe()'s report as JSON, which replaces the result; END, after the last
one.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import io
import json
import linecache
import os
import pickle
import platform
import socket
import struct
import sys
import traceback
import types
from typing import Any, BinaryIO, NamedTuple

VALUE, ERROR, END = b"V", b"E", b"."

_BLOCK_BYTES = 1 << 20
_SCHEME = "unix:"


class _Connection(http.client.HTTPConnection):
    """HTTP over the agent's Unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost")
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(self._path)
        credentials = self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        _, user, _ = struct.unpack("3i", credentials)
        if user != os.getuid():
            raise PermissionError(f"{self._path} belongs to user {user}, and this process to user {os.getuid()}")


class Launcher:
    """The rank's connection to the launcher. Threads  one at a time.

    rank  the number of this process, which in an elastic job need not be its rank.
    """

    def __init__(self, address: str, rank: int) -> None:
        if not address.startswith(_SCHEME):
            raise RuntimeError(f"RUNJOB_RENDEZVOUS is {address!r}: this program is started by runjob.run(), and by nothing else")
        self._connection = _Connection(address[len(_SCHEME) :])
        self._rank = rank

    def function_block(self, offset: int) -> bytes:
        """Bytes of the function from `offset` on; none at the end."""
        return self._ask("GET", f"/v1/call/function/{offset}")

    def send(self, kind: bytes, block: bytes = b"") -> None:
        """Sends a block. Returns when the caller's socket has it."""
        self._ask("POST", "/v1/call/result", kind + block)

    def _ask(self, method: str, path: str, body: bytes | None = None) -> bytes:
        self._connection.request(method, path, body, {"Runjob-Rank": str(self._rank)})
        response = self._connection.getresponse()
        answer = response.read()
        if response.status != http.client.OK:
            raise RuntimeError(f"{method} {path} was answered {response.status}: {answer.decode(errors='replace')}")
        return answer


class _Function(io.RawIOBase):
    """The function's bytes as a file."""

    def __init__(self, launcher: Launcher) -> None:
        self._launcher = launcher
        self._offset = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        block = self._launcher.function_block(self._offset)[: len(buffer)]
        buffer[: len(block)] = block
        self._offset += len(block)
        return len(block)


class _Outcome(io.RawIOBase):
    """The outcome of the call, as a file that is written in blocks."""

    def __init__(self, launcher: Launcher, kind: bytes) -> None:
        self._launcher = launcher
        self._kind = kind

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        block = bytes(data[:_BLOCK_BYTES])
        self._launcher.send(self._kind, block)
        return len(block)


class Call(NamedTuple):
    """The caller's request. `results` is "pickle" or "json", the form in which the caller takes the function's result."""

    function: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    results: str


def load_call(file: BinaryIO) -> Call:
    """The call in the caller's pickles. Errors  RuntimeError if they cannot be used here."""
    caller = pickle.load(file)
    here = platform.python_version_tuple()[:2]
    if here != caller["python"]:
        raise RuntimeError(
            f"this rank runs Python {'.'.join(here)} ({sys.executable}) and the caller Python {'.'.join(caller['python'])}: "
            "a function can be sent between equal versions only; name another interpreter with run(executable=...)"
        )
    for name, lines in caller["sources"].items():
        linecache.cache[name] = (sum(map(len, lines)), None, lines, name)
    sys.path += [folder for folder in caller["path"] if folder not in sys.path]
    try:
        import cloudpickle  # noqa: F401  # the pickle needs it
    except ImportError:
        raise RuntimeError(f"cloudpickle is missing for {sys.executable}: {sys.executable} -m pip install cloudpickle") from None
    function, args, kwargs = pickle.load(file)
    return Call(function, args, kwargs, caller["results"])


def _of_function(frames: types.TracebackType | None) -> types.TracebackType | None:
    """The frames of the called function: those after this module's own frames, if there are any."""
    last = None
    each = frames
    while each is not None and (last is None or _is_ours(each)):
        last = each if _is_ours(each) else last
        each = each.tb_next
    return frames if last is None else last.tb_next


def _is_ours(frame: types.TracebackType) -> bool:
    """True for a frame of this module. It compares identities, because the caller's functions may belong to a module of
    the same name.
    """
    return frame.tb_frame.f_globals is globals()


def print_exception(kind: type[BaseException], error: BaseException, frames: types.TracebackType | None) -> None:
    """sys.excepthook of a rank. A rank that only lost another rank prints one line. A rank that Ctrl-C ended prints
    nothing.
    """
    if isinstance(error, KeyboardInterrupt):
        return
    if _lost_another(error):
        print(f"{kind.__name__}: {error}", file=sys.stderr)
    else:
        traceback.print_exception(kind, error, _of_function(frames))


def _lost_another(error: BaseException) -> bool:
    from ..exceptions import AbortedError, PeerLostError

    return isinstance(error, (AbortedError, PeerLostError))


def describe(error: BaseException) -> dict[str, Any]:
    """The report of an exception for the caller, for JSON. "exception" is its pickle in base64, or None if it has none."""
    report: dict[str, Any] = {
        "what": "".join(traceback.format_exception_only(type(error), error)).strip(),
        "traceback": "".join(traceback.format_exception(type(error), error, _of_function(error.__traceback__))),
        "lost_another": _lost_another(error),
        "exception": None,
    }
    with contextlib.suppress(Exception):
        import cloudpickle

        report["exception"] = base64.b64encode(cloudpickle.dumps(error)).decode()
    return report


def _send_result(launcher: Launcher, rank: int, value: Any, form: str) -> None:
    import cloudpickle

    try:
        with io.BufferedWriter(_Outcome(launcher, VALUE), _BLOCK_BYTES) as file:
            if form == "json":
                file.write(json.dumps(value).encode())
            else:
                cloudpickle.dump(value, file, protocol=pickle.HIGHEST_PROTOCOL)
    except (pickle.PicklingError, TypeError, ValueError, AttributeError, RecursionError, NotImplementedError) as error:
        raise TypeError(
            f"the result of rank {rank}, a {type(value).__name__}, cannot be sent to the caller as {form}: {error}"
        ) from error
    launcher.send(END)


def call(launcher: Launcher, rank: int) -> None:
    """Calls the function and sends its result. If it raises, sends the exception and raises it."""
    try:
        called = load_call(io.BufferedReader(_Function(launcher), _BLOCK_BYTES))
        result = called.function(*called.args, **called.kwargs)
        _send_result(launcher, rank, result, called.results)
    except SystemExit:
        raise
    except BaseException as error:
        file = io.BytesIO(json.dumps(describe(error)).encode())
        for block in iter(lambda: file.read(_BLOCK_BYTES), b""):
            launcher.send(ERROR, block)
        launcher.send(END)
        raise


def main() -> None:
    """Runs the whole process. Errors  RuntimeError if no run() has started it; any exception of the function."""
    sys.excepthook = print_exception
    rank = int(os.environ.get("RUNJOB_PROCESS_NUMBER") or os.environ.get("RUNJOB_RANK", "-1"))
    call(Launcher(os.environ.get("RUNJOB_RENDEZVOUS", ""), rank), rank)


if __name__ == "__main__":
    main()
