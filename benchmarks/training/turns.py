"""Jobs that stay alive and train in turns, so that what else the machine does meets all of them alike."""

import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import tempfile
import time

from benchmarks.training import peers

GRACE_SECONDS = 5
LOOK_AROUND_SECONDS = 0.5  # whether a job that is to begin has ended


class Failed(Exception):
    """A job that gave no answer, in its own last words."""


class Job:
    """A running job of `np` ranks, each at the other end of a socket. Between turns it waits, without using a processor.

    `head`: the testbed's host that starts it; None: this machine. `folder`: for the socket, which all hosts can see.
    """

    def __init__(self, peer, np, model, timeout, has_priority=False, head=None, folder=None):
        self.peer = peer
        self._ranks, self._pids = [], []
        self._folder = tempfile.TemporaryDirectory(prefix="runjob-training-", dir=folder)
        self._errors = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")
        path = pathlib.Path(self._folder.name) / "socket"
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        if head:  # its ranks are another user's
            os.chmod(self._folder.name, 0o755)
            os.chmod(path, 0o777)
        self._listener.listen()
        self._listener.settimeout(LOOK_AROUND_SECONDS)
        variables = {**peers.VARIABLES, **peer.environment}
        options = {"stdin": subprocess.DEVNULL, "stdout": self._errors, "stderr": subprocess.STDOUT, "start_new_session": True}
        if head:
            self._process = head.popen(peer.command(np, model, path), variables=variables, **options)
        else:
            self._process = subprocess.Popen(peer.command(np, model, path), env={**os.environ, **variables}, **options)
        try:
            self.facts = self._meet(np, timeout, has_priority)
        except BaseException:
            self.end()
            raise

    def _meet(self, np, timeout, has_priority):
        """Every rank's first line, in the order of the ranks."""
        deadline = time.monotonic() + timeout
        while len(self._ranks) < np:
            try:
                connection, _ = self._listener.accept()
            except TimeoutError:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise Failed(f"not all ranks began: {self._last_words()}") from None
                continue
            connection.settimeout(timeout)
            self._ranks.append(connection.makefile("rw", encoding="ascii"))
        facts = sorted((self._read(rank) for rank in self._ranks), key=lambda each: each["rank"])
        self._pids = [each["pid"] for each in facts]
        if has_priority:
            prefer(self._pids)
        self._rest(signal.SIGSTOP)
        return facts

    def take_turn(self, steps):
        """What each rank says of so many steps."""
        self._rest(signal.SIGCONT)
        for rank in self._ranks:
            rank.write(f"{steps}\n")
            rank.flush()
        answers = [self._read(rank) for rank in self._ranks]
        self._rest(signal.SIGSTOP)
        return answers

    def end(self):
        self._rest(signal.SIGCONT)
        for rank in self._ranks:
            with contextlib.suppress(OSError):
                rank.close()
        try:
            self._process.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            for signum in (signal.SIGTERM, signal.SIGKILL):
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self._process.pid, signum)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(GRACE_SECONDS)
                    break
        self._listener.close()
        self._folder.cleanup()

    def _rest(self, signum):
        if self.peer.never_rests:
            for pid in self._pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signum)

    def _read(self, rank):
        try:
            line = rank.readline()
        except OSError as error:
            raise Failed(f"no answer: {error}; {self._last_words()}") from None
        if not line:
            raise Failed(self._last_words())
        return json.loads(line)

    def _last_words(self):
        self._errors.seek(0)
        lines = [line.strip() for line in self._errors if line.strip()]
        return lines[-1] if lines else "it has ended without a word"


def prefer(pids):
    """Gives processes nearly all of the processors' time, and still the usual scheduler: for a machine that has other work. Needs root."""
    for pid in pids:
        for thread in pathlib.Path(f"/proc/{pid}/task").iterdir():
            os.setpriority(os.PRIO_PROCESS, int(thread.name), -20)
        with contextlib.suppress(FileNotFoundError):  # a kernel without groups by session
            pathlib.Path(f"/proc/{pid}/autogroup").write_text("-20", encoding="ascii")


def measure(jobs, turns, steps, settle):
    """{peer: answers of all ranks, by turn}. The order rotates; the first `settle` steps of a turn bring back caches."""
    answers = {job.peer.name: [] for job in jobs}
    for turn in range(turns if jobs else 0):
        first = turn % len(jobs)
        for job in jobs[first:] + jobs[:first]:
            heard = job.take_turn(steps + settle)
            for answer in heard:
                answer["seconds"] = answer["seconds"][settle:]
            answers[job.peer.name].append(heard)
    return answers
