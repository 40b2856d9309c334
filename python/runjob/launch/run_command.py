"""The command line by which run() starts its job: finds the program `runjob`, and translates run()'s arguments into
options.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import sys
from typing import Any, Iterable, Mapping, Sequence

_OVERRIDE = "RUNJOB_BIN"
_PACKAGES = ("site-packages", "dist-packages")

# For -c and -m, Python puts the current folder, which may be another user's, at the front of its path. The program
# removes it before any import. `-P` does the same, but only from Python 3.11 on, and older versions would refuse it
# before run_rank can name the versions.
_RANK_PROGRAM = "import sys; sys.path[:1] == [''] and sys.path.pop(0); from runjob.launch.run_rank import main; main()"


def candidates() -> list[pathlib.Path]:
    """The places where the program may be, the best first: the source tree's release build, then the folder `bin` of
    pip's installation.
    """
    package = pathlib.Path(__file__).resolve().parents[1]
    folders = [package.parents[1] / "build" / "release" / "bin", package.parent / "bin", pathlib.Path(sys.prefix) / "bin"]
    if package.parent.name in _PACKAGES:
        folders.insert(1, package.parents[3] / "bin")  # PREFIX/lib/python3.X/site-packages/runjob
    return [folder / "runjob" for folder in folders]


def find() -> str:
    """The program to start: $RUNJOB_BIN, else the first candidate that exists, else the program on PATH.

    Errors  FileNotFoundError with the places that were tried.
    """
    override = os.environ.get(_OVERRIDE)
    if override:
        if not os.access(override, os.X_OK):
            raise FileNotFoundError(f"{_OVERRIDE} names {override}, which is no program; unset it or name `runjob`")
        return override
    for path in candidates():
        if os.access(path, os.X_OK):
            return str(path)
    on_path = shutil.which("runjob")
    if on_path:
        return on_path
    tried = ", ".join(map(str, candidates()))
    raise FileNotFoundError(
        f"the program runjob was not found (tried {tried}, and PATH); install runjob-launcher, or set {_OVERRIDE} to its path"
    )


def options(values: Mapping[str, Any]) -> list[str]:
    """Options of the command for `values`, which are by run()'s names. None and False are left out, True is a flag, and
    lists are joined.
    """
    words: list[str] = []
    for name, value in values.items():
        if value is None or value is False:
            continue
        if isinstance(value, Iterable) and not isinstance(value, str):
            value = ",".join(map(str, value))
        option = f"--{name.replace('_', '-')}"
        words.append(option if value is True else f"{option}={value}")
    return words


def exports(env: Mapping[str, str] | None) -> list[str]:
    """The options that give `env` to every rank. They contain only names. Values are passed in the launcher's own
    environment, because every user of the host can read command lines.

    Errors  ValueError for a name that no variable can have, TypeError for a value that is not a string.
    """
    words = []
    for name, value in (env or {}).items():
        if not isinstance(value, str):
            raise TypeError(f"env[{name!r}] is {value!r}; values of variables are strings")
        if not name or "=" in name or "\0" in name + value:
            raise ValueError(f"env: {name!r} cannot be the name of a variable, or its value has a zero byte")
        words += ["-x", name]
    return words


def environment(env: Mapping[str, str] | None) -> dict[str, str]:
    """The launcher's environment: that of this process and `env`, with our package on Python's path if it is not
    installed.
    """
    result = {**os.environ, **(env or {})}
    folder = pathlib.Path(__file__).resolve().parents[2]
    if folder.name not in _PACKAGES:
        result["PYTHONPATH"] = os.pathsep.join(filter(None, [str(folder), result.get("PYTHONPATH")]))
    return result


def rank_command(executable: str | None) -> Sequence[str]:
    """The command of each rank. It imports nothing from the current folder, unless the caller's path contains that folder."""
    return [executable or sys.executable or "python3", "-c", _RANK_PROGRAM]
