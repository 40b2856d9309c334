"""Starts real jobs for the tests and looks at what they leave behind."""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import uuid

from running_job import ROOT, RUNJOB, RunningJob
from testbed import eventually

TIMEOUT = 240  # of a job that hangs: a busy machine takes minutes to import frameworks in three ranks


def command(*arguments: str) -> list[str]:
    return [RUNJOB, *map(str, arguments)]


def run(*arguments: str, **options) -> subprocess.CompletedProcess:
    """Runs a job to its end and returns text output."""
    options.setdefault("stdin", subprocess.DEVNULL)
    options.setdefault("timeout", TIMEOUT)
    if "input" in options:
        del options["stdin"]
    return subprocess.run(command(*arguments), capture_output=True, text=True, **options)


def python(code: str) -> list[str]:
    """A rank's command line that runs `code`."""
    return [sys.executable, "-c", code]


def by_rank(output: str, stream: str = "stdout") -> dict[int, list[str]]:
    """The lines of each rank, without their prefix."""
    lines: dict[int, list[str]] = {}
    for line in output.splitlines():
        prefix, separator, text = line.partition(f"]<{stream}>:")
        if separator and prefix.startswith("["):
            lines.setdefault(int(prefix[1:]), []).append(text)
    return lines


class Marked(RunningJob):
    """A job whose processes all carry a mark in their environment, so that what is left of it can be found."""

    TIMEOUT = TIMEOUT

    def __init__(self, *arguments: str, **options):
        self.mark = f"JOB_TEST_MARK={uuid.uuid4()}"
        name, value = self.mark.split("=")
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        environment = {**os.environ, **options.pop("env", {}), name: value}
        self.process = subprocess.Popen(command(*arguments), env=environment, text=True, **options)

    def kill_the_rest(self) -> None:
        for pid in self.alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def alive(self) -> list[int]:
        """Processes other than runjob itself that carry the mark and are not zombies."""
        return list(self.names())

    def names(self) -> dict[int, str]:
        """The names of the processes of alive(), by process id."""
        found = {}
        for entry in os.listdir("/proc"):
            if not entry.isdigit() or int(entry) == self.process.pid:
                continue
            try:
                environment = pathlib.Path(f"/proc/{entry}/environ").read_bytes()
                before, _, after = pathlib.Path(f"/proc/{entry}/stat").read_text().rpartition(")")
            except OSError:  # It has ended since the folder was read.
                continue
            if self.mark.encode() in environment.split(b"\0") and after.split()[0] != "Z":
                found[int(entry)] = before.partition("(")[2]
        return found

    def named(self, name: str) -> list[int]:
        """Those of alive() that call themselves so."""
        return [pid for pid, own in self.names().items() if own == name]

    def wait_until_gone(self) -> None:
        eventually(lambda: not self.alive(), "every process of the job has ended")
