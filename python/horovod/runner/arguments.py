"""_HorovodArgs: horovodrun's arguments as an object, by which launchers of clusters start jobs with horovod.runner.launch._run()."""

from __future__ import annotations

from typing import Any

from runjob.launch.run_command import options

#: Attributes that are no options of the command.
_OTHERS = ("num_proc", "np", "command", "run_func", "executable", "verbose")

#: Attributes whose option has another name.
_RENAMED = {
    "min_num_proc": "min_np", "max_num_proc": "max_np", "nics": "network_interfaces", "nic": "network_interfaces", "use_gloo": "gloo",
    "use_mpi": "mpi", "use_jsrun": "jsrun", "tcp_flag": "tcp",
}  # fmt: skip


class _HorovodArgs:
    """The options of horovodrun by their names, with underscores for dashes. An option that has not been set is None.

    command   the words of the command, or
    run_func  a function to call on each rank, with the Python `executable`.
    """

    def __init__(self) -> None:
        self.num_proc: int | None = 1

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return None


def words_of(arguments: _HorovodArgs) -> list[str]:
    """The options of the command, except for the number of ranks."""
    given = {_RENAMED.get(name, name): value for name, value in vars(arguments).items() if name not in _OTHERS and value not in ([], "")}
    return options({**given, "verbose": bool(arguments.verbose)})
