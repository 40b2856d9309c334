"""The command `horovodrun`: the program `runjob` under that name. From the name it knows that it replaces Horovod's."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .arguments import _HorovodArgs


def run_commandline() -> None:
    """Replaces this process by the program, with this process's arguments. Never returns. Exits with a message if the
    program cannot be found.
    """
    from runjob.launch.run_command import find

    try:
        program = find()
    except FileNotFoundError as error:
        sys.exit(f"horovodrun: error: {error}")
    os.execv(program, ["horovodrun", *sys.argv[1:]])


def _run(args: _HorovodArgs) -> list[Any] | None:
    """Starts the job that `args` describes. Returns the result of run_func on each rank; for a command None.

    Errors  those of runjob.run() for a function. RuntimeError if a command has failed, whose failure is reported on
    standard error.
    """
    import runjob
    from runjob.launch.run_command import find

    from . import _LEAD, _rephrase_as_horovod
    from .arguments import words_of

    ranks = args.np or args.num_proc
    if args.run_func is not None:
        try:
            return runjob.run(args.run_func, np=ranks, executable=args.executable, options=words_of(args))
        except runjob.RunError as error:
            _rephrase_as_horovod(error)
            raise
    number = [] if ranks is None else ["-np", str(ranks)]
    done = subprocess.run(["horovodrun", *number, *words_of(args), "--", *args.command], executable=find(), check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{_LEAD}the status of the job is {done.returncode}")
    return None


if __name__ == "__main__":
    run_commandline()
