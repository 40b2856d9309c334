"""The owner's end of a connection to a process inside: lines of JSON."""

import json
import select
import socket
import threading

from . import requirements
from .errors import TestbedError

LIMIT_SECONDS = 60  # nothing that is asked for takes seconds


class Control:
    """Any thread may ask; one at a time is served."""

    def __init__(self, who):
        self._who = who
        self._own, self.other = socket.socketpair()
        self._own.settimeout(LIMIT_SECONDS)
        self._lines = self._own.makefile("r", encoding="utf-8")
        self._lock = threading.Lock()
        self._asked = 0

    def send(self, message):
        try:
            self._own.sendall((json.dumps(message) + "\n").encode())
        except BrokenPipeError:
            raise TestbedError(f"{self._who} has ended") from None

    def receive(self):
        """The next answer. TestbedError when it is a complaint, or when there is none."""
        try:
            line = self._read_line()
        except TimeoutError:
            raise TestbedError(f"{self._who} did not answer within {LIMIT_SECONDS} s") from None
        if not line:
            raise TestbedError(f"{self._who} has ended")
        answer = json.loads(line)
        if "error" in answer:
            raise TestbedError(self._explained(answer))
        return answer

    def complaint(self):
        """What it has complained about already, or None."""
        if not select.select([self._own], [], [], 0)[0]:
            return None
        line = self._read_line()
        answer = json.loads(line) if line else {}
        return self._explained(answer) if "error" in answer else None

    def _read_line(self):
        """Nothing when the other end is gone."""
        try:
            return self._lines.readline()
        except ConnectionResetError:
            return ""

    def _explained(self, answer):
        return f"{self._who}: {requirements.explain(answer['error'])}"

    def post(self, action, **fields):
        """A request whose answer is received later, before any other is asked."""
        self._asked += 1
        self.send({"id": self._asked, "do": action, **fields})

    def ask(self, action, **fields):
        with self._lock:
            self.post(action, **fields)
            return self.receive()

    def close(self):
        self._lines.close()
        self._own.close()
