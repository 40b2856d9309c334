"""Starts the processes that a testbed consists of, and ends them."""

import contextlib
import os
import pathlib
import select
import signal
import subprocess
import sys

from .control import LIMIT_SECONDS, Control
from .errors import TestbedError

INSIDE = pathlib.Path(__file__).resolve().parent / "inside"


class Keeper:
    """The keeper process and the PID 1 of each host. inside/__main__.py says what they do."""

    def __init__(self, switch, shared, hosts):
        """
        switch  lines for ip in the network that joins the hosts.
        shared  mount options of the file system that hosts may share.
        hosts   [(name, lines for ip in the switch, set-up)].
        """
        self.controls = [Control(name) for name, _, _ in hosts]
        self._control = Control("the testbed's keeper")
        self.pids = []
        self._pidfds = []
        sockets = [self._control.other, *(control.other for control in self.controls)]
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", INSIDE, str(self._control.other.fileno())],
            pass_fds=[other.fileno() for other in sockets], start_new_session=True, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        plan = [
            {"fd": control.other.fileno(), "links": links} for control, (_, links, _) in zip(self.controls, hosts)
        ]
        for other in sockets:
            other.close()
        try:
            self._start(switch, shared, plan, [setup for _, _, setup in hosts])
        except BaseException:
            self.close()
            raise

    @property
    def pid(self):
        """Of the process whose network namespace joins the hosts."""
        return self._process.pid

    def _start(self, switch, shared, plan, setups):
        self._control.send({"owner": os.getpid(), "switch": switch, "shared": shared, "hosts": plan})
        for control, setup in zip(self.controls, setups):
            control.send(setup)
        try:
            self.pids = self._control.receive()["pids"]
        except TestbedError:
            self._raise_what_a_host_says()
            raise
        self._pidfds = [os.pidfd_open(pid) for pid in self.pids]
        for control in self.controls:
            control.receive()

    def _raise_what_a_host_says(self):
        """A host that could not be made is the cause of what fails after it, in the keeper and in other hosts."""
        for complaint in filter(None, (control.complaint() for control in self.controls)):
            raise TestbedError(complaint)

    def kill(self, index):
        """Ends every process of a host. Those that are the caller's children remain to be reaped, before wait_until_dead()."""
        with contextlib.suppress(ProcessLookupError):  # the keeper was killed, and reaped by another
            signal.pidfd_send_signal(self._pidfds[index], signal.SIGKILL)

    def wait_until_dead(self, index):
        select.select([self._pidfds[index]], [], [])

    def close(self):
        for control in (self._control, *self.controls):
            control.close()
        try:
            self._process.wait(LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for descriptor in self._pidfds:
            os.close(descriptor)
        self._pidfds = []
