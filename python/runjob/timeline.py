"""`python -m runjob.timeline FILE`: prints the ranks that the others waited for in a timeline, which share of the time
each rank communicated, and the operations in which ranks waited.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import json
import pathlib
import re
import statistics
import sys
from collections.abc import Iterable, Iterator
from typing import Any

_ROWS = 10  # operations to print, those with the longest waits

Span = tuple[float, float]


@dataclasses.dataclass
class Operation:
    """One run of a collective. Times are in microseconds since the start of the trace.

    ticks  the time when each rank was ready, with the rank's number, in the order of the times.
    data   the span from the time at which all ranks were ready to the end.
    """

    name: str
    ticks: list[tuple[float, int]] = dataclasses.field(default_factory=list)
    data: Span = (0.0, 0.0)

    def wait(self) -> Span:
        """The span from the first rank's tick to the last rank's."""
        return self.ticks[0][0], self.ticks[-1][0]

    def of_ranks(self) -> Iterator[tuple[int, Span, Span]]:
        """Each rank with two spans: from the rank's tick to the end, and the part of it in which data moved. The tick of
        a rank on another host may be late, but not later than the end.
        """
        begin, end = self.data
        return ((rank, (min(tick, end), end), (min(max(tick, begin), end), end)) for tick, rank in self.ticks)

    def wait_for_last(self) -> Span:
        """The part of wait() in which only the last rank was not ready."""
        return self.ticks[-2][0], self.ticks[-1][0]


def operations(events: Iterable[dict[str, Any]]) -> list[Operation]:
    """The operations in rank 0's track that have ended. Rows of gradients are left out, because each repeats the
    operation of its bucket.
    """
    names: dict[Any, str] = {}
    rows: dict[Any, list[dict[str, Any]]] = collections.defaultdict(list)
    for event in events:
        if event.get("name") == "process_name":
            names[event["pid"]] = event["args"].get("name", "")
        elif event.get("ph") in ("B", "E", "X"):
            rows[event["pid"]].append(event)
    found: list[Operation] = []
    for pid, row in rows.items():
        if not any(event.get("name") == "WAIT_FOR_OTHER_TENSOR_DATA" for event in row):
            found += _operations_of(names.get(pid, ""), row)
    return [each for each in found if len(each.ticks) > 1]


def hosts(events: Iterable[dict[str, Any]]) -> dict[int, str]:
    """The host of each rank that has a track; {} for a timeline of rank 0's view alone."""
    names = (event["args"].get("name", "") for event in events if event.get("name") == "process_name")
    found = (re.fullmatch(r"rank (\d+) on (.+)", name) for name in names)
    return {int(each[1]): each[2] for each in found if each}


def _operations_of(name: str, row: list[dict[str, Any]]) -> Iterator[Operation]:
    depth, begin, current = 0, 0.0, Operation(name)
    for event in row:
        text = event.get("name", "")
        if event["ph"] == "X" and text.isdigit():
            current.ticks.append((event["ts"], int(text)))
        elif event["ph"] == "B":
            if depth == 0:
                begin = event["ts"]
            if depth == 0 and text.startswith("NEGOTIATE_"):
                current = Operation(name)
            depth += 1
        elif event["ph"] == "E":
            depth -= 1
            if depth == 0 and current.ticks and begin >= current.ticks[-1][0]:  # the operation itself, after its negotiation
                current.data = begin, event["ts"]
                current.ticks.sort()
                yield current
                current = Operation(name)


def milliseconds(spans: Iterable[Span]) -> float:
    """The time during which at least one of the spans lasted, since operations overlap."""
    total, end = 0.0, float("-inf")
    for first, last in sorted(spans):
        total += max(0.0, last - max(first, end))
        end = max(end, last)
    return total / 1000


def shares(found: list[Operation]) -> dict[int, tuple[float, float]]:
    """Of each rank: the shares of the recorded time in which it had an operation under way that moved no data yet, and in
    which data moved. The recorded time is that from the first tick to the end of the last operation.
    """
    under_way: dict[int, list[Span]] = collections.defaultdict(list)
    moving: dict[int, list[Span]] = collections.defaultdict(list)
    for each in found:
        for rank, span, data_span in each.of_ranks():
            under_way[rank].append(span)
            moving[rank].append(data_span)
    whole = max(recorded(found), 0.001)  # the trace counts whole microseconds
    data = {rank: milliseconds(spans) / whole for rank, spans in moving.items()}
    return {rank: (milliseconds(spans) / whole - data[rank], data[rank]) for rank, spans in sorted(under_way.items())}


def recorded(found: list[Operation]) -> float:
    """Milliseconds from the first tick to the end of the last operation."""
    return (max(each.data[1] for each in found) - min(each.ticks[0][0] for each in found)) / 1000


def _share_rows(found: list[Operation], host_of: dict[int, str]) -> list[str]:
    by_rank = shares(found)
    lines = ["", f"{'rank':>6} {'communication':>15} {'waits':>8} {'data':>8}" + ("   host" if host_of else "")]

    def row(name: str, waits: float, data: float, host: str) -> str:
        return f"{name:>6} {waits + data:>15.1%} {waits:>8.1%} {data:>8.1%}   {host}".rstrip()

    lines += [row(str(rank), *share, host_of.get(rank, "")) for rank, share in by_rank.items()]
    names = sorted(set(host_of.values()))
    for name in names if len(names) > 1 else ():
        theirs = [share for rank, share in by_rank.items() if host_of.get(rank) == name]
        if theirs:
            lines.append(row("mean", statistics.fmean(waits for waits, _ in theirs), statistics.fmean(data for _, data in theirs), name))
    return lines


def report(found: list[Operation], host_of: dict[int, str]) -> str:
    """Three tables: for which ranks the others waited, the ranks' shares of communication, and the operations with the
    longest waits. `host_of`: of each rank, if it is known.
    """
    late: dict[int, list[Operation]] = {rank: [] for each in found for _, rank in each.ticks}
    for each in found:
        late[each.ticks[-1][1]].append(each)
    waits = {rank: milliseconds(each.wait_for_last() for each in theirs) for rank, theirs in late.items()}
    lines = [f"{len(found)} operations in {recorded(found):.1f} ms", "", f"{'rank':>6} {'was last in':>12} {'waited for alone':>19}"]
    for rank in sorted(late, key=lambda rank: -waits[rank]):
        lines.append(f"{rank:>6} {len(late[rank]):>12} {waits[rank]:>16.1f} ms")
    lines += _share_rows(found, host_of)
    by_name = collections.defaultdict(list)
    for each in found:
        by_name[each.name].append(each)
    rows = [(milliseconds(each.wait() for each in runs), milliseconds(each.data for each in runs), name, runs) for name, runs in by_name.items()]
    rows.sort(key=lambda row: (-row[0], row[2]))
    width = max(len("operation"), *(len(name) for _, _, name, _ in rows[:_ROWS]))
    lines += ["", f"  {'operation':<{width}} {'runs':>7} {'ranks waited':>15} {'data moved':>15}"]
    lines += [f"  {name:<{width}} {len(runs):>7} {wait:>12.1f} ms {data:>12.1f} ms" for wait, data, name, runs in rows[:_ROWS]]
    if len(rows) > _ROWS:
        lines.append(f"  ... and {len(rows) - _ROWS} more")
    return "\n".join(lines)


def main() -> None:
    """Runs the command. Exits with status 1 and a message for a file that is not a timeline, or that has no operation
    of several ranks.
    """
    parser = argparse.ArgumentParser(prog="python -m runjob.timeline", description="Prints for which rank the others waited in a timeline, and each rank's share of communication.")
    parser.add_argument("file", type=pathlib.Path, help="of `runjob --timeline-filename FILE`")
    file = parser.parse_args().file
    try:
        events = json.loads(file.read_text(encoding="utf-8"))
        found, host_of = operations(events), hosts(events)
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        sys.exit(f"{parser.prog}: {file} cannot be read as a timeline: {getattr(error, 'strerror', None) or error}")
    if not found:
        sys.exit(f"{parser.prog}: {file} has no operation for which ranks waited: a job of one rank, or one that has just begun?")
    print(report(found, host_of))


if __name__ == "__main__":
    main()
