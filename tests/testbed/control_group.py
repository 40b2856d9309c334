"""A control group of this machine: a limit for a program and all that it starts.

    with ControlGroup(memory=300 << 20) as group:
        subprocess.run([...], preexec_fn=group.join)

It takes control groups of either version, where the machine has the controller. Needs root.
"""

import contextlib
import os
import pathlib
import signal
import uuid

from .errors import NeedsRoot, TestbedError
from .eventually import eventually

ROOT = pathlib.Path("/sys/fs/cgroup")
FILES = {
    "pids": {1: "pids.max", 2: "pids.max"},
    "memory": {1: "memory.limit_in_bytes", 2: "memory.max"},
    "cpu": {1: "cpu.cfs_quota_us", 2: "cpu.max"},
}


def _version(controller):
    if (ROOT / controller / "cgroup.procs").exists():
        return 1
    controllers = ROOT / "cgroup.controllers"
    if controllers.exists() and controller in controllers.read_text().split():
        return 2
    return None


class ControlGroup:
    """One limit, given by its name: `pids` (processes and threads), `memory` (bytes) or `cpu` (microseconds of processor time in
    100,000)."""

    def __init__(self, **limit):
        ((self._controller, self._limit),) = limit.items()

    def __enter__(self):
        version = _version(self._controller)
        if os.geteuid() != 0:
            raise NeedsRoot("the testbed makes control groups, which needs root; run the tests as root")
        if version is None:
            raise TestbedError(f"the testbed needs control groups with the controller '{self._controller}' below {ROOT}")
        name = f"runjob-test-{uuid.uuid4().hex}"
        if version == 2:
            (ROOT / "cgroup.subtree_control").write_text(f"+{self._controller}")
        self._folder = ROOT / self._controller / name if version == 1 else ROOT / name
        self._file = FILES[self._controller][version]
        self._folder.mkdir()
        self.set(self._limit)
        return self

    def __exit__(self, *_):
        eventually(self._is_empty, "no process is left in the control group")
        self._folder.rmdir()

    def _is_empty(self):
        """Kills what is left, so that a test that fails leaves nothing."""
        left = (self._folder / "cgroup.procs").read_text().split()
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        return not left

    def set(self, limit):
        """A limit below what is in use lets all live, and refuses more."""
        (self._folder / self._file).write_text(str(limit))

    def join(self):
        """Moves the calling process in."""
        (self._folder / "cgroup.procs").write_text(str(os.getpid()))

    def release(self, pid):
        """Moves a process out, where the limit does not count."""
        (self._folder.parent / "cgroup.procs").write_text(str(pid))
