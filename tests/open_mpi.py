"""The Open MPI that tests use, chosen by name: another MPI beside it may be the one that `mpirun` and mpi4py find first."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
from collections.abc import Mapping

#: The variable of mpi4py's wheel that chooses between its extension modules for Open MPI and for MPICH.
ABI_VARIABLE = "MPI4PY_MPIABI"
ABI = "openmpi"


def mpirun(path: str | None = None) -> str:
    """The mpirun of Open MPI in the folders of `path`, or of $PATH: Debian's name for it, or an mpirun that says it is one.

    AssertionError that names the package when there is none.
    """
    if found := shutil.which("mpirun.openmpi", path=path):
        return found
    found = shutil.which("mpirun", path=path)
    version = subprocess.run([found, "--version"], capture_output=True, text=True, check=False).stdout if found else ""
    assert found and ("Open MPI" in version or "OpenRTE" in version), (
        f"{found or 'no mpirun'} is not Open MPI's; install Open MPI (Debian and Ubuntu: apt-get install openmpi-bin)"
    )
    return found


def variables(environment: Mapping[str, str]) -> dict[str, str]:
    """`environment` for programs of mpirun(): mpi4py loads Open MPI, and no folder of LD_LIBRARY_PATH holds another MPI's libraries."""
    folders = environment.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    kept = os.pathsep.join(folder for folder in folders if folder and not any(pathlib.Path(folder).glob("libmpi.so*")))
    return {**environment, "LD_LIBRARY_PATH": kept, ABI_VARIABLE: ABI}
