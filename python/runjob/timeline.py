"""`python -m runjob.timeline FILE`: prints the ranks that the others waited for in a timeline, and the operations in
which they waited.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import json
import pathlib
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


def report(found: list[Operation]) -> str:
    """Two tables: the ranks, then the operations with the longest waits."""
    late: dict[int, list[Operation]] = {rank: [] for each in found for _, rank in each.ticks}
    for each in found:
        late[each.ticks[-1][1]].append(each)
    waits = {rank: milliseconds(each.wait_for_last() for each in theirs) for rank, theirs in late.items()}
    lines = [f"{len(found)} operations", "", f"{'rank':>6} {'was last in':>12} {'waited for alone':>19}"]
    for rank in sorted(late, key=lambda rank: -waits[rank]):
        lines.append(f"{rank:>6} {len(late[rank]):>12} {waits[rank]:>16.1f} ms")
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
    parser = argparse.ArgumentParser(prog="python -m runjob.timeline", description="Prints for which rank the others waited in a timeline.")
    parser.add_argument("file", type=pathlib.Path, help="of `runjob --timeline-filename FILE`")
    file = parser.parse_args().file
    try:
        found = operations(json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        sys.exit(f"{parser.prog}: {file} cannot be read as a timeline: {getattr(error, 'strerror', None) or error}")
    if not found:
        sys.exit(f"{parser.prog}: {file} has no operation for which ranks waited: a job of one rank, or one that has just begun?")
    print(report(found))


if __name__ == "__main__":
    main()
