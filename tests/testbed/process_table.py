"""The processes of a host, seen from the machine."""

import dataclasses
import os
import pathlib
import signal

PROC = pathlib.Path("/proc")


@dataclasses.dataclass(frozen=True)
class Process:
    pid: int  # as the host counts
    machine_pid: int  # as the machine does: what the tests may signal
    parent: int  # as the machine counts
    user_id: int
    name: str
    command: tuple  # its words
    environment: dict

    def has_mark(self, mark):
        """Whether NAME=VALUE is in its environment."""
        name, _, value = mark.partition("=")
        return self.environment.get(name) == value

    def kill(self, number=signal.SIGKILL):
        os.kill(self.machine_pid, number)

    def __str__(self):
        return f"{self.pid} {' '.join(self.command) or self.name}"


def in_namespace_of(pid):
    """Processes in the PID namespace of `pid`, without zombies. One that ends meanwhile may be missing."""
    namespace = os.readlink(PROC / str(pid) / "ns/pid")
    found = (_look_at(entry, namespace) for entry in os.listdir(PROC) if entry.isdigit())
    return sorted((process for process in found if process), key=lambda process: process.pid)


def _look_at(entry, namespace):
    folder = PROC / entry
    try:
        if os.readlink(folder / "ns/pid") != namespace:
            return None
        fields = dict(line.split(":\t", 1) for line in (folder / "status").read_text().splitlines() if ":\t" in line)
        if fields["State"].startswith(("Z", "X")):
            return None
        return Process(
            pid=int(fields["NSpid"].split()[-1]),
            machine_pid=int(entry),
            parent=int(fields["PPid"]),
            user_id=int(fields["Uid"].split()[0]),
            name=fields["Name"],
            command=tuple(_strings(folder / "cmdline")),
            environment=dict(word.split("=", 1) for word in _strings(folder / "environ") if "=" in word),
        )
    except (OSError, KeyError):
        return None  # it ended while it was looked at


def _strings(path):
    return [word.decode(errors="surrogateescape") for word in path.read_bytes().split(b"\0")[:-1]]
