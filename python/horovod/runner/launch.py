"""The command `horovodrun`: the program `runjob` under that name, by which it knows that it stands in for Horovod's."""

from __future__ import annotations

import os
import sys


def run_commandline() -> None:
    """Becomes the program, with this process's arguments. Returns never; says what is wrong when it cannot be found."""
    from runjob.launch.run_command import find

    try:
        program = find()
    except FileNotFoundError as error:
        sys.exit(f"horovodrun: error: {error}")
    os.execv(program, ["horovodrun", *sys.argv[1:]])


if __name__ == "__main__":
    run_commandline()
