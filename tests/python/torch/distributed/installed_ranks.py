"""Ranks for which PyTorch finds the entry points of the package. A folder with them stands in for an installation, because
the tests run from the source tree.
"""

import os
import pathlib
import subprocess
import sys

import ranks


def path_of(installed: pathlib.Path) -> str:
    """Python's path with our packages and their entry points."""
    return os.pathsep.join([str(ranks.ROOT / "python"), str(installed)])


def run(installed, code, *options, np=2, arguments=(), status=0, **variables):
    """The lines that the ranks print, without their tags and sorted, and standard error.

    code     a program's text; None: the first of the arguments is its file.
    options  of the launcher.
    """
    environment = {**ranks.environment(**variables), "PYTHONPATH": path_of(installed)}
    program = ["-c", code] if code else []
    command = [str(ranks.LAUNCHER), "-np", str(np), *options, sys.executable, *program, *map(str, arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=ranks.TIMEOUT_SECONDS)
    assert done.returncode == status, done.stdout + done.stderr
    return sorted(line.split(">:", 1)[1] for line in done.stdout.splitlines()), done.stderr
