"""The launchers that can start a program on other hosts, each with one rank per host."""

import dataclasses
import pathlib
import re
import shutil
from typing import Callable

import peers

PARALLEL_SSH = """
for host in $1; do ssh "$host" "$2" & sessions="$sessions $!"; done
for session in $sessions; do wait "$session" || exit; done
"""


@dataclasses.dataclass(frozen=True)
class HostPeer:
    name: str
    version: str
    folder: pathlib.Path | None  # what the head must be able to read of it
    needed_on_hosts: bool  # whether it must be on the other hosts too
    command: Callable[[list, list], list]  # names of hosts, program -> the launcher's command line


def runjob(path):
    found, reason = peers.runjob(path)
    if not found:
        return None, reason
    program = shutil.which(path)
    folder = pathlib.Path(program).resolve().parent
    return HostPeer("runjob", found.version, folder, False, lambda hosts, words: [program, "-H", ",".join(hosts), *words]), ""


def ssh():
    """Everybody's floor: as many sessions of ssh, all at once, and nothing else."""
    program = shutil.which("ssh")
    if not program:
        return None, "no ssh on the PATH (Debian: openssh-client)"
    version = re.sub(r",.*", "", peers.first_line(program, "-V"))

    def command(hosts, words):
        return ["sh", "-c", PARALLEL_SSH, "sh", " ".join(hosts), " ".join(words)]

    return HostPeer("ssh", version, None, False, command), ""


def open_mpi():
    found, reason = peers.open_mpi()
    if not found:
        return None, reason
    program = found.start[0]

    def command(hosts, words):
        slots = ",".join(f"{host}:1" for host in hosts)
        return [program, "--mca", "plm_rsh_agent", "ssh", "-np", str(len(hosts)), "-H", slots, *words]

    return HostPeer("mpirun", found.version, pathlib.Path(program).resolve().parent, True, command), ""


def mpich(folder):
    found, reason = peers.mpich(folder)
    if not found:
        return None, reason
    program = found.start[0]

    def command(hosts, words):
        return [program, "-launcher", "ssh", "-n", str(len(hosts)), "-hosts", ",".join(hosts), *words]

    return HostPeer("mpiexec", found.version, pathlib.Path(program).resolve().parents[1], True, command), ""


def horovodrun():
    found, reason = peers.horovodrun()
    if not found:
        return None, reason
    program = found.start[0]

    def command(hosts, words):
        return [program, "-np", str(len(hosts)), "-H", ",".join(f"{host}:1" for host in hosts), *words]

    return HostPeer("horovodrun", found.version, pathlib.Path(program).resolve().parents[1], True, command), ""


def find(arguments):
    """The peers that are here, runjob first, and the reasons why the others are not."""
    searches = [
        runjob(arguments.runjob), ssh(), open_mpi(), mpich(pathlib.Path(arguments.mpich).resolve()), horovodrun(),
    ]  # fmt: skip
    return [peer for peer, _ in searches if peer], [reason for _, reason in searches if reason]
