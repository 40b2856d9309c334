"""Ranks that a real Open MPI starts, without the launcher."""

from __future__ import annotations

import os
import subprocess
import sys

from ranks import TIMEOUT_SECONDS, environment

#: For a root user and few cores, and without a look at the network.
OPTIONS = ["--allow-run-as-root", "--oversubscribe", "--mca", "btl", "self,vader", "--mca", "orte_keep_fqdn_hostnames", "0"]


def mpirun(np: int, code: str, **extra: str) -> subprocess.CompletedProcess:
    """`code` on every rank, which imports runjob.numpy as hvd. Tests are ranks of no job themselves."""
    variables = {name: value for name, value in environment(**extra).items() if not name.startswith(("OMPI_", "PMIX_", "RUNJOB_"))}
    variables.pop("PYTHONUNBUFFERED", None)  # a line is one write, or those of two ranks could be mixed
    variables.update({name: os.environ[name] for name in ("RUNJOB_LIBRARY", "RUNJOB_BIN") if name in os.environ}, **extra)
    command = ["mpirun", *OPTIONS, "-np", str(np), sys.executable, "-c", "import runjob.numpy as hvd\n" + code]
    return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=TIMEOUT_SECONDS)


def lines_of(done: subprocess.CompletedProcess) -> list[str]:
    """What the ranks printed, sorted. Fails unless all ended well."""
    assert done.returncode == 0, f"status {done.returncode}\n{done.stdout}\n{done.stderr}"
    return sorted(filter(None, done.stdout.splitlines()))
