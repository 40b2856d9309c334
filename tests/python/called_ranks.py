"""Real ranks that wait for calls: one job of them for many tests, where each function begins and ends a job of the library itself.

Starting a rank that imports PyTorch takes two seconds, most functions a hundredth of that. What is about a rank's process, its start, its
end or what it writes has ranks of its own: ranks.start().
"""

from __future__ import annotations

import os
import pathlib
import pickle
import socket
import subprocess
import sys
from multiprocessing import connection
from typing import Any, Callable

import ranks
from testbed import OutOfTime

PROGRAM = ranks.ROOT / "tests" / "python" / "answer_calls.py"


class CalledRanks:
    def __init__(self, folder: pathlib.Path, np: int):
        """Starts `np` ranks, one without the launcher if that is 0; `folder` is made, and theirs alone."""
        folder.mkdir()
        launcher = [str(ranks.LAUNCHER), "-np", str(np)] if np else []
        self._output = folder / "output"
        with socket.socket(socket.AF_UNIX) as listener, self._output.open("wb") as output:
            listener.bind(str(folder / "socket"))
            listener.listen(np + 1)
            command = [*launcher, sys.executable, str(PROGRAM), str(folder / "socket")]
            self._job = subprocess.Popen(command, env=ranks.environment(), stdin=subprocess.DEVNULL, stdout=output, stderr=output)
            self._end = os.pidfd_open(self._job.pid)
            accepted = [self._accept(listener) for _ in range(max(np, 1))]
        self._ranks = [rank for _, rank in sorted((self._receive(rank), rank) for rank in accepted)]

    def call(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """What the function of a test module returns on each rank."""
        source = sys.modules[function.__module__].__file__
        call = pickle.dumps((source, function.__name__, arguments))  # send() would share tensors' memory
        for rank in self._ranks:
            rank.send_bytes(call)
        return [self._receive(rank) for rank in self._ranks]

    def close(self) -> None:
        """The ranks see that there are no more calls, and end."""
        for rank in self._ranks:
            rank.close()
        status = self._job.wait(ranks.TIMEOUT_SECONDS)
        assert status == 0, self._failure(f"status {status} at the end")

    def kill(self) -> None:
        self._job.kill()
        self._job.wait()
        os.close(self._end)

    def _accept(self, listener: socket.socket) -> connection.Connection:
        self._wait_for(listener)
        return connection.Connection(listener.accept()[0].detach())

    def _receive(self, rank: connection.Connection) -> Any:
        self._wait_for(rank)
        try:
            return pickle.loads(rank.recv_bytes())
        except EOFError:  # the launcher ends the others and tells why
            raise AssertionError(self._failure(f"status {self._job.wait(ranks.TIMEOUT_SECONDS)}")) from None

    def _wait_for(self, source: Any) -> None:
        ready = connection.wait([source, self._end], ranks.TIMEOUT_SECONDS)
        if not ready:
            raise OutOfTime(self._failure(f"no answer of a rank within {ranks.TIMEOUT_SECONDS} s"))
        assert source in ready, self._failure(f"status {self._job.wait()}")

    def _failure(self, what: str) -> str:
        return f"{what}\n{self._output.read_text(errors='replace')}"
