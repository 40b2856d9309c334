"""Facts about the machine and the state it is in, for the report."""

import os
import pathlib
import subprocess

from runjob.benchmark import machine
from runjob.benchmark.machine import line_of, noise

__all__ = ["available_bytes", "facts", "noise"]

ROOT = pathlib.Path(__file__).resolve().parents[2]


def available_bytes():
    words = line_of("/proc/meminfo", "MemAvailable").split()
    return int(words[0]) * 1024 if words[0].isdigit() else 1 << 62


def commit():
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() or "unknown"
    except OSError:
        return "unknown"


def facts():
    mine = {"cores": len(os.sched_getaffinity(0)), "commit": commit()}
    return {**machine.facts(), **mine}
