"""horovod.run(): runjob.run() with Horovod's arguments."""

from __future__ import annotations

import warnings
from typing import Any, Callable, Sequence

import runjob

from .arguments import _HorovodArgs as _HorovodArgs

#: The arguments of elastic jobs, and the command's options for them.
_ELASTIC = {
    "max_num_proc": "--max-np", "slots": "--slots-per-host", "reset_limit": "--reset-limit", "cooldown_range": "--blacklist-cooldown-range",
    "host_discovery_script": "--host-discovery-script",
}  # fmt: skip

#: The beginning that scripts look for in the message of a failed rank.
_LEAD = "Horovod detected that one or more processes exited with non-zero status: "

#: Arguments that have no effect here, with the reason.
_NO_EFFECT = {
    "use_mpi": "runjob starts the ranks itself; start a program that uses MPI with mpirun",
    "mpi_args": "runjob starts the ranks itself, without mpirun",
}


def run(
    func: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: dict[str, Any] | None = None,
    num_proc: int | None = 1,
    min_num_proc: int | None = None,
    max_num_proc: int | None = None,
    slots: int | None = None,
    reset_limit: int | None = None,
    cooldown_range: tuple[int, int] | None = None,
    hosts: str | None = None,
    hostfile: str | None = None,
    host_discovery_script: str | None = None,
    start_timeout: int | None = None,
    ssh_port: int | None = None,
    ssh_identity_file: str | None = None,
    disable_cache: bool | None = None,
    output_filename: str | None = None,
    verbose: int | bool | None = None,
    use_gloo: bool | None = None,
    use_mpi: bool | None = None,
    mpi_args: str | None = None,
    network_interface: str | None = None,
    network_interfaces: str | Sequence[str] | None = None,
    executable: str | None = None,
    np: int | None = None,
    min_np: int | None = None,
    max_np: int | None = None,
) -> list[Any]:
    """Calls func(*args, **kwargs) on `num_proc` ranks and returns their results, in rank order: see runjob.run().

    num_proc   None means 1.
    min_num_proc, host_discovery_script
               make the job elastic. It starts with at least min_num_proc ranks. The results are those of the first
               min_num_proc ranks that the job has in the end.
    slots      the number of slots of each host that the script prints without a number.
    cooldown_range
               the shortest and the longest time for which a failed host is excluded, in seconds.

    use_gloo   True has no effect, because runjob always works so.
    np, min_np, max_np, network_interface
               older names of num_proc, min_num_proc, max_num_proc and network_interfaces: DeprecationWarning.

    An argument that has no effect here causes a UserWarning with the reason. Errors  those of runjob.run(), whose
    RunError is a RuntimeError as in Horovod; ValueError for `hosts` with `hostfile` and for `use_gloo` with `use_mpi`.
    """
    given = dict(locals())
    num_proc = _renamed(given, "np", "num_proc", num_proc)
    given["min_num_proc"] = _renamed(given, "min_np", "min_num_proc", min_num_proc)
    given["max_num_proc"] = _renamed(given, "max_np", "max_num_proc", max_num_proc)
    network_interfaces = _renamed(given, "network_interface", "network_interfaces", network_interfaces)
    if hosts is not None and hostfile is not None:
        raise ValueError("hosts= and hostfile= both name hosts; give one of them")
    if use_gloo and use_mpi:
        raise ValueError("use_gloo= and use_mpi= exclude each other; give one of them")
    is_elastic = given["min_num_proc"] is not None or host_discovery_script is not None
    num_proc = 1 if num_proc is None else num_proc
    fewest = given["min_num_proc"] or num_proc
    no_effect = _NO_EFFECT if is_elastic else {**_NO_EFFECT, **dict.fromkeys(_ELASTIC, "it is for elastic jobs, and min_num_proc= makes one")}
    for name, reason in no_effect.items():
        if given[name]:
            warnings.warn(f"horovod.run({name}=...) has no effect: {reason}", stacklevel=2)
    if isinstance(network_interfaces, str):
        network_interfaces = [network_interfaces]
    try:
        results = runjob.run(
            func, args, kwargs, np=max(num_proc, fewest), min_num_proc=fewest if is_elastic else None, hosts=hosts, hostfile=hostfile,
            start_timeout=start_timeout, ssh_port=ssh_port, ssh_identity_file=ssh_identity_file, output_filename=output_filename,
            verbose=bool(verbose), executable=executable,
            options=[*(_elastic_options(given) if is_elastic else ()), *(f"--network-interfaces={each}" for each in network_interfaces or ())],
        )  # fmt: skip
        return results[:fewest] if is_elastic else results
    except runjob.RunError as error:
        _rephrase_as_horovod(error)
        raise


def _elastic_options(given: dict[str, Any]) -> list[str]:
    words: list[str] = []
    for name, option in _ELASTIC.items():
        value = given[name]
        if value is not None:
            words += [option, *map(str, value if isinstance(value, (tuple, list)) else [value])]
    return words


def _rephrase_as_horovod(error: runjob.RunError) -> None:
    if error.rank is not None:
        error.args = (_LEAD + str(error),)


def _renamed(given: dict[str, Any], old: str, new: str, value: Any) -> Any:
    """`value` of the argument `new`, or the value of its older name."""
    if given[old] is None:
        return value
    warnings.warn(f"horovod.run({old}=...) is deprecated: use {new}=", DeprecationWarning, stacklevel=3)
    return given[old]


def __dir__() -> list[str]:
    return sorted(set(globals()) - {"Any", "Callable", "Sequence", "annotations", "runjob", "warnings"})
