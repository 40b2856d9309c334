"""Starts real jobs from a testbed's head on its hosts, and looks at what they leave there."""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
import uuid

from testbed import eventually

ROOT = pathlib.Path(__file__).resolve().parents[3]
RUNJOB = os.environ.get("RUNJOB_BIN", str(ROOT / "build" / "release" / "bin" / "runjob"))
PYTHON = "/usr/bin/python3"

# Programs for python().
SLEEP = "import time\nprint('ready')\ntime.sleep(600)"

# Leaves a process behind that has a session of its own and no output.
DAEMON = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.close(1); os.close(2)
        time.sleep(600)
    os._exit(0)
os.wait()
print('ready', flush=True)
time.sleep(600)
"""


def run(bed, *arguments, **options):
    """Runs a job to its end, from the head."""
    return bed.head.run([RUNJOB, *map(str, arguments)], **options)


def python(code):
    """A rank's command line that runs `code`."""
    return [PYTHON, "-u", "-c", code]


class Running:
    """A job whose processes all carry a mark in their environment, on every host."""

    def __init__(self, bed, *arguments, **options):
        self.bed = bed
        self.mark = f"JOB_TEST_MARK={uuid.uuid4()}"
        name, _, value = self.mark.partition("=")
        options.setdefault("stdout", -1)
        options.setdefault("stderr", -1)
        variables = {**options.pop("variables", {}), name: value}
        self.process = bed.head.popen([RUNJOB, *map(str, arguments)], variables=variables, text=True, **options)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream:
                stream.close()
        self.process.wait()
        for host in [*self.bed.hosts, self.bed.head]:
            for process in self.on(host):
                with contextlib.suppress(ProcessLookupError):  # it has just ended by itself
                    os.kill(process.machine_pid, signal.SIGKILL)

    def wait_for_lines(self, count):
        return [self.process.stdout.readline() for _ in range(count)]

    def finish(self, timeout=60):
        output, errors = self.process.communicate(timeout=timeout)
        return self.process.returncode, output, errors

    def on(self, host):
        """The job's processes there. An agent and its guard do not carry the mark: SSH passes no environment on."""
        return [process for process in host.processes() if process.has_mark(self.mark) or process.name.startswith("runjob-")]

    def named(self, host, name):
        return [process for process in self.on(host) if process.name == name]

    def is_gone_from(self, *hosts):
        return not any(self.on(host) for host in hosts)

    def wait_until_gone(self, *hosts):
        eventually(lambda: self.is_gone_from(*hosts), f"nothing of the job on {[host.name for host in hosts]}")
