"""Elastic jobs whose ranks print when they stood still, as tests/runtime/elastic_rank.cc describes: started, killed, and read."""

from __future__ import annotations

import os
import pathlib
import queue
import re
import signal
import subprocess
import threading
import time
import uuid

ROOT = pathlib.Path(__file__).resolve().parents[2]
RUNJOB = str(ROOT / "build/release/bin/runjob")
RANK = str(ROOT / "build/release/bin/elastic_rank")
LIMIT_SECONDS = 60  # for what never comes
GENERATION = re.compile(r"generation (-?\d+): rank (\d+) of (\d+), process (\d+): stood from (\S+) to (\S+)")
ERROR = re.compile(r"error at (\d+\.\d+)")


class Line:
    """One rank's report of the first allreduce in a generation: its end, and that of the last one before (0: none)."""

    def __init__(self, match):
        self.generation, self.rank, self.size, self.process = map(int, match.groups()[:4])
        self.last, self.first = float(match[5]), float(match[6])


class Job:
    """A job of any launcher, on this host or from a testbed's head, whose ranks end when they see the file `stop`."""

    def __init__(self, command, program, bed=None, variables=None):
        """command  its words, in which "STOP" stands for that file.
        program  a word by which the ranks' command lines are known."""
        self.stop = ROOT / "build" / f"stop.{uuid.uuid4()}"  # where the hosts of a testbed see it
        self._program, self._mark = program, uuid.uuid4().hex
        self._lines: queue.Queue = queue.Queue()
        self.errors: list[float] = []  # when ranks had one
        self.output: list[str] = []
        words = [str(self.stop) if word == "STOP" else str(word) for word in command]
        variables = {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "python"), **(variables or {}), "BENCHMARK_MARK": self._mark}
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        if bed:
            self.process = bed.head.popen(words, variables=variables, **streams)
        else:
            self.process = subprocess.Popen(words, env={**os.environ, **variables}, start_new_session=True, **streams)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop.touch()
        try:
            self.process.wait(LIMIT_SECONDS / 4)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        finally:
            for file in (self.stop, pathlib.Path("/dev/shm") / self.stop.name):  # the second one is train_digits.py's checkpoint
                file.unlink(missing_ok=True)
        for pid in self._marked():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self._reader.join(LIMIT_SECONDS / 4)

    def _read(self):
        for text in self.process.stdout:
            self.output.append(text)
            if match := GENERATION.search(text):
                self._lines.put(Line(match))
            elif match := ERROR.search(text):
                self.errors.append(float(match[1]))
        self._lines.put(None)

    def wait_for_generation(self, *sizes, after=0.0):
        """The lines of all ranks of the first generation of one of these sizes whose first allreduce ended after the time `after`."""
        found: dict[int, list[Line]] = {}
        until = time.monotonic() + LIMIT_SECONDS
        while True:
            try:
                line = self._lines.get(timeout=max(0.0, until - time.monotonic()))
            except queue.Empty:
                raise RuntimeError(f"never {sizes} ranks:\n" + "".join(self.output[-30:])) from None
            if line is None:
                raise RuntimeError(f"the job ended before it had {sizes} ranks:\n" + "".join(self.output[-30:]))
            if line.size not in sizes or line.first <= after:
                continue
            found.setdefault(line.generation, []).append(line)
            if len(found[line.generation]) == line.size:
                return found[line.generation]

    def ranks(self):
        """Returns the process id and the environment of each process that runs the program."""
        found = []
        for pid in self._marked():
            try:
                words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
                variables = dict(word.split("=", 1) for word in environment_of(pid) if "=" in word)
            except OSError:
                continue
            if any(word.endswith(self._program) for word in words[:3]) and variables.keys() & {"RUNJOB_PROCESS_NUMBER", "HOROVOD_RANK", "RANK"}:
                found.append((pid, variables))
        return found

    def kill_rank(self, number):
        """Kills the number-th of the ranks, in the order of their process numbers. Returns the time."""
        ranks = sorted(self.ranks(), key=lambda each: int(each[1].get("RUNJOB_PROCESS_NUMBER") or each[1].get("HOROVOD_RANK") or each[1]["RANK"]))
        before = time.monotonic()
        os.kill(ranks[number][0], signal.SIGKILL)
        return before

    def _marked(self):
        for entry in os.listdir("/proc"):
            if entry.isdigit() and int(entry) != os.getpid():
                try:
                    if f"BENCHMARK_MARK={self._mark}" in environment_of(entry):
                        yield int(entry)
                except OSError:
                    continue


def environment_of(pid):
    return pathlib.Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace").split("\0")
