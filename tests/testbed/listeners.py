"""The sockets of a host that wait for others: TCP listeners and open UDP ports, with the program that has them."""

import dataclasses
import ipaddress
import os
import pathlib
import struct

PROC = pathlib.Path("/proc")
TCP_LISTEN, UDP_OPEN = "0A", "07"  # include/net/tcp_states.h; a UDP socket without a peer is "closed"


@dataclasses.dataclass(frozen=True)
class Listener:
    protocol: str  # tcp, tcp6, udp, udp6
    address: str
    port: int
    pid: int | None  # as the machine counts; None when its process has just ended
    program: str


def of_host(init_pid, processes):
    """`processes`: those of the host, which may have the sockets."""
    owners = _owners(processes)
    found = []
    for protocol, state in (("tcp", TCP_LISTEN), ("tcp6", TCP_LISTEN), ("udp", UDP_OPEN), ("udp6", UDP_OPEN)):
        for line in (PROC / str(init_pid) / "net" / protocol).read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == state:
                address, port = words[1].split(":")
                pid, program = owners.get(words[9], (None, ""))
                found.append(Listener(protocol, _address(address), int(port, 16), pid, program))
    return found


def _owners(processes):
    """{inode of a socket: (pid, program)}"""
    owners = {}
    for process in processes:
        folder = PROC / str(process.machine_pid) / "fd"
        try:
            for descriptor in os.listdir(folder):
                kind, _, inode = os.readlink(folder / descriptor).partition(":")
                if kind == "socket":
                    owners.setdefault(inode.strip("[]"), (process.machine_pid, process.name))
        except OSError:
            continue  # it ended, or closed this one, meanwhile
    return owners


def _address(text):
    """The kernel prints 32-bit words in the machine's byte order."""
    words = [int(text[start : start + 8], 16) for start in range(0, len(text), 8)]
    return str(ipaddress.ip_address(struct.pack(f"={len(words)}I", *words)))
