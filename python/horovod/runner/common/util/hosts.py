"""horovod.runner.common.util.hosts: lists of hosts as text, and the placement of ranks on hosts."""

from __future__ import annotations

import collections
import dataclasses
import pathlib
import re
from collections.abc import Sequence

_HOST = re.compile(r"(?P<name>[\w.-]+):(?P<slots>[0-9]+)")
_HOSTFILE_LINE = re.compile(r"(?P<name>\S+)\s+slots\s*=\s*(?P<slots>[0-9]+)")


class HostInfo:
    """A host, and the number of its slots."""

    def __init__(self, hostname: str, slots: int) -> None:
        self.hostname = hostname
        self.slots = slots

    @staticmethod
    def from_string(host_string: str) -> HostInfo:
        """The host that `name:slots` describes. Errors  ValueError for another form."""
        match = _HOST.fullmatch(host_string.strip())
        if match is None:
            raise ValueError(f"host {host_string.strip()!r} is not of the form name:slots, as in worker-0:2,worker-1:2")
        return HostInfo(match["name"], int(match["slots"]))


@dataclasses.dataclass
class SlotInfo:
    """The place of one rank."""

    hostname: str
    rank: int
    local_rank: int
    cross_rank: int
    size: int
    local_size: int
    cross_size: int

    def to_response_string(self) -> str:
        """Rank and size of the job, then those on the host, then those across hosts, separated by commas."""
        numbers = (self.rank, self.size, self.local_rank, self.local_size, self.cross_rank, self.cross_size)
        return ",".join(map(str, numbers))


INVALID_SLOT_INFO = SlotInfo("", -1, -1, -1, -1, -1, -1)


def parse_hosts(hosts_string: str) -> list[HostInfo]:
    """The hosts that `name:slots,name:slots` lists. Errors  ValueError for another form."""
    return [HostInfo.from_string(each) for each in hosts_string.split(",")]


def parse_hosts_and_slots(hosts: str) -> tuple[list[str], dict[str, int]]:
    """The names of the hosts that parse_hosts() finds, and the slots by name."""
    parsed = parse_hosts(hosts)
    return [each.hostname for each in parsed], {each.hostname: each.slots for each in parsed}


def parse_host_files(filename: str) -> str:
    """The hosts of a file with lines `name slots=N`, as parse_hosts() takes them. Errors  ValueError that names the line."""
    found = []
    for number, line in enumerate(pathlib.Path(filename).read_text(encoding="utf-8").splitlines(), 1):
        text = line.partition("#")[0].strip()
        if not text:
            continue
        match = _HOSTFILE_LINE.match(text)
        if match is None:
            raise ValueError(f"{filename}:{number}: {line.strip()!r} is not of the form `name slots=N`")
        found.append(f"{match['name']}:{match['slots']}")
    return ",".join(found)


def get_host_assignments(hosts: Sequence[HostInfo], min_num_proc: int, max_num_proc: int | None = None) -> list[SlotInfo]:
    """The places of the ranks, which fill one host after the other.

    min_num_proc  the least number of ranks.
    max_num_proc  the largest number of ranks. None means one for each slot.
    Errors        ValueError for too few slots.
    """
    slots: list[tuple[str, int]] = []
    used: collections.Counter[str] = collections.Counter()  # a host may be listed twice
    for host in hosts:
        slots += [(host.hostname, used[host.hostname] + slot) for slot in range(host.slots)]
        used[host.hostname] += host.slots
    if len(slots) < min_num_proc:
        raise ValueError(f"{min_num_proc} processes do not fit into {len(slots)} slots; add hosts or slots, or ask for fewer processes")
    slots = slots[:max_num_proc]
    local_sizes = collections.Counter(name for name, _ in slots)
    columns: dict[int, list[str]] = {}
    for name, local_rank in slots:
        columns.setdefault(local_rank, []).append(name)
    return [
        SlotInfo(
            name, rank, local_rank, columns[local_rank].index(name), len(slots), local_sizes[name], len(columns[local_rank])
        )
        for rank, (name, local_rank) in enumerate(slots)
    ]  # fmt: skip
