"""A job that runs while a test looks at it."""

from __future__ import annotations

import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
RUNJOB = os.environ.get("RUNJOB_BIN", str(ROOT / "build" / "release" / "bin" / "runjob"))

# Programs of ranks, for python().
SLEEP = "import time\nprint('ready')\ntime.sleep(600)"
STUBBORN = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('ready')\ntime.sleep(600)"


class RunningJob:
    """For `with`, whose end kills all that is left of the job. A class that is derived from this one starts `process`, with pipes, and
    kills in kill_the_rest() what the job's own process has left."""

    TIMEOUT = 60

    process: subprocess.Popen

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream:
                stream.close()
        self.process.wait()
        self.kill_the_rest()

    def kill_the_rest(self) -> None:
        raise NotImplementedError

    def wait_for_lines(self, count: int) -> list[str]:
        """The first lines of standard output: what the test waits for, not a time."""
        return [self.process.stdout.readline() for _ in range(count)]

    def finish(self, timeout: float | None = None) -> tuple[int, str, str]:
        """The exit status, the output and the errors, at the job's end."""
        output, errors = self.process.communicate(timeout=timeout or self.TIMEOUT)
        return self.process.returncode, output, errors
