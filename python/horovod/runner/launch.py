"""The command `horovodrun`: the program `runjob` under that name, by which it knows that it stands in for Horovod's."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .arguments import _HorovodArgs


def run_commandline() -> None:
    """Becomes the program, with this process's arguments. Returns never; says what is wrong when it cannot be found."""
    from runjob.launch.run_command import find

    try:
        program = find()
    except FileNotFoundError as error:
        sys.exit(f"horovodrun: error: {error}")
    os.execv(program, ["horovodrun", *sys.argv[1:]])


def _run(args: _HorovodArgs) -> list[Any] | None:
    """Starts the job that `args` describes: what run_func has returned on each rank; None for a command.

    Errors  those of runjob.run() for a function. RuntimeError when a command has failed; what has failed is on standard error.
    """
    import runjob
    from runjob.launch.run_command import find

    from . import _LEAD, _say_horovods_words
    from .arguments import words_of

    ranks = args.np or args.num_proc
    if args.run_func is not None:
        try:
            return runjob.run(args.run_func, np=ranks, executable=args.executable, options=words_of(args))
        except runjob.RunError as error:
            _say_horovods_words(error)
            raise
    number = [] if ranks is None else ["-np", str(ranks)]
    done = subprocess.run(["horovodrun", *number, *words_of(args), "--", *args.command], executable=find(), check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{_LEAD}the status of the job is {done.returncode}")
    return None


if __name__ == "__main__":
    run_commandline()
