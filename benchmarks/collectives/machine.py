"""Facts about the machine and the state it is in, for the report."""

import os
import pathlib
import platform
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
NOISY_LOAD = 0.3


def line_of(path, start=""):
    """What follows the colon of a file's first line that begins with `start`; without a colon, the whole line."""
    try:
        lines = pathlib.Path(path).read_text(encoding="utf-8").splitlines()
    except OSError:
        return "unknown"
    found = next((line for line in lines if line.startswith(start)), "unknown")
    return found.partition(":")[2].strip() or found


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
    return {
        "cpu": line_of("/proc/cpuinfo", "model name"), "cores": len(os.sched_getaffinity(0)), "kernel": platform.release(),
        "memory": line_of("/proc/meminfo", "MemTotal"), "cpu_quota": line_of("/sys/fs/cgroup/cpu.max"),
        "huge_pages": line_of("/sys/kernel/mm/transparent_hugepage/enabled"),
        "huge_pages_shared": line_of("/sys/kernel/mm/transparent_hugepage/shmem_enabled"),
        "load": os.getloadavg()[0], "commit": commit(),
    }  # fmt: skip


def noise(load):
    """What to say of a machine that is not idle, or ""."""
    return f"other work is running (load {load:.1f}): read gaps under 2x as nothing" if load > NOISY_LOAD else ""
