"""A rank's side of the turns: it takes as many steps as it is told, as often as it is told, and says how long they took.

It talks to the benchmark through a Unix socket: a line with a number of steps comes in, a line of JSON goes out.
"""

from __future__ import annotations

import json
import os
import pathlib
import socket
from typing import Any

WARM_UP_STEPS = 3


def memory() -> dict[str, int]:
    """Kilobytes: the most that was resident, and the share of what is resident now."""
    found = {}
    for path, key in (("/proc/self/status", "VmHWM"), ("/proc/self/smaps_rollup", "Pss")):
        lines = pathlib.Path(path).read_text(encoding="ascii").splitlines()
        found[key] = next(int(line.split()[1]) for line in lines if line.startswith(f"{key}:"))
    return found


def take_turns(path: str, rank: int, training: Any, library: str) -> None:
    """Until the benchmark ends. `training`: has batch, parameters and take(steps), the seconds of each; `library`: name and version."""
    training.take(WARM_UP_STEPS)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        stream = connection.makefile("rw", encoding="ascii")

        def say(**values: Any) -> None:
            stream.write(json.dumps(values) + "\n")
            stream.flush()

        facts = {"batch": training.batch, "parameters": training.parameters, "library": library}
        say(rank=rank, pid=os.getpid(), **facts, **memory())
        for line in stream:
            say(seconds=training.take(int(line)), **memory())
