"""Starts real jobs from a testbed's head on its hosts, and looks at what they leave there."""

from __future__ import annotations

import contextlib
import os
import signal
import uuid

from running_job import ROOT, RUNJOB, SLEEP, RunningJob
from testbed import eventually

PYTHON = "/usr/bin/python3"

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


class Running(RunningJob):
    """A job whose processes all carry a mark in their environment, on every host."""

    def __init__(self, bed, *arguments, **options):
        self.bed = bed
        self.mark = f"JOB_TEST_MARK={uuid.uuid4()}"
        name, _, value = self.mark.partition("=")
        options.setdefault("stdout", -1)
        options.setdefault("stderr", -1)
        variables = {**options.pop("variables", {}), name: value}
        self.process = bed.head.popen([RUNJOB, *map(str, arguments)], variables=variables, text=True, **options)

    def kill_the_rest(self):
        for host in [*self.bed.hosts, self.bed.head]:
            for process in self.on(host):
                with contextlib.suppress(ProcessLookupError):  # it has just ended by itself
                    os.kill(process.machine_pid, signal.SIGKILL)

    def on(self, host):
        """The job's processes there. An agent and its guard do not carry the mark: SSH passes no environment on."""
        return [process for process in host.processes() if process.has_mark(self.mark) or process.name.startswith("runjob-")]

    def named(self, host, name):
        return [process for process in self.on(host) if process.name == name]

    def is_gone_from(self, *hosts):
        return not any(self.on(host) for host in hosts)

    def wait_until_gone(self, *hosts):
        eventually(lambda: self.is_gone_from(*hosts), f"nothing of the job on {[host.name for host in hosts]}")
