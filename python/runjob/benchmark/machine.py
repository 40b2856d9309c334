"""Facts about a host and its Python, which figures are meaningless without."""

from __future__ import annotations

import os
import pathlib
import platform

_NOISY_LOAD = 0.3  # before the ranks have started


def line_of(path: str, start: str = "") -> str:
    """The text after the colon of a file's first line that begins with `start`; without a colon, the whole line."""
    try:
        lines = pathlib.Path(path).read_text(encoding="utf-8").splitlines()
    except OSError:
        return "unknown"
    found = next((line for line in lines if line.startswith(start)), "unknown")
    return found.partition(":")[2].strip() or found


def facts() -> dict[str, str]:
    """The hardware and the system. What a machine does not tell is `unknown`."""
    return {
        "cpu": line_of("/proc/cpuinfo", "model name"), "cores": str(os.cpu_count()), "kernel": platform.release(),
        "memory": line_of("/proc/meminfo", "MemTotal"), "cpu_quota": line_of("/sys/fs/cgroup/cpu.max"),
        "huge_pages": line_of("/sys/kernel/mm/transparent_hugepage/enabled"),
        "huge_pages_shared": line_of("/sys/kernel/mm/transparent_hugepage/shmem_enabled"), "load": f"{os.getloadavg()[0]:.2f}",
    }  # fmt: skip


def noise(load: float) -> str:
    """A warning that a machine is not idle, or ""."""
    return f"other work is running (load {load:.1f}): read gaps under 2x as nothing" if load > _NOISY_LOAD else ""
