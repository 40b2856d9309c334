"""Starts real ranks with the real launcher, and plain Python processes with our packages."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import pickle
import subprocess
import sys
from typing import Any

import open_mpi

ROOT = pathlib.Path(__file__).resolve().parents[2]
LAUNCHER = pathlib.Path(os.environ.get("RUNJOB_BIN", ROOT / "build" / "release" / "bin" / "runjob"))
TIMEOUT_SECONDS = 240  # of a job that hangs: no test depends on it


@dataclasses.dataclass
class Job:
    """A finished job. `results`: what the function returned, by rank; None where it did not return."""

    status: int
    stdout: str
    stderr: str
    results: list[Any]


def environment(**extra: str) -> dict[str, str]:
    """This process's, with our packages on Python's path; a rank that imports mpi4py gets Open MPI."""
    path = os.pathsep.join(filter(None, [str(ROOT / "python"), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", open_mpi.ABI_VARIABLE: open_mpi.ABI, **extra}


def start(results: pathlib.Path, what: Any, np: int, *arguments: Any, status: int | None = 0) -> Job:
    """What the fixture run_ranks does; `results` is a folder for this one job."""
    results.mkdir()
    if callable(what):
        source = sys.modules[what.__module__].__file__
        (results / "call").write_bytes(pickle.dumps((source, what.__name__, arguments)))
        command = [sys.executable, str(ROOT / "tests" / "python" / "call_function.py"), str(results)]
    else:
        command = [sys.executable, str(what), *map(str, arguments)]
    if np:
        assert LAUNCHER.exists(), f"{LAUNCHER} is not built; build it or set RUNJOB_BIN"
        command = [str(LAUNCHER), "-np", str(np), *command]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
    if status is not None:
        assert done.returncode == status, f"status {done.returncode}\n{done.stdout}\n{done.stderr}"
    return Job(done.returncode, done.stdout, done.stderr, [_load(results / f"rank.{i}") for i in range(max(np, 1))])


def python(*command: str, **extra: str) -> subprocess.CompletedProcess:
    """A finished Python process with our packages, whatever its status."""
    return subprocess.run(
        [sys.executable, *command], env=environment(**extra), capture_output=True, text=True, timeout=TIMEOUT_SECONDS
    )


def _load(path: pathlib.Path) -> Any:
    return pickle.loads(path.read_bytes()) if path.exists() else None
