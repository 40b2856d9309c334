"""run(): calls a function on the ranks of a job, from a script, a Python prompt or a notebook. docs/run-function.md."""

from __future__ import annotations

import collections
import linecache
import os
import pickle
import platform
import sys
import tempfile
import types
from typing import Any, BinaryIO, Callable, Iterable, Mapping, Sequence

from . import run_command
from .run_job import Job


def run(
    func: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    np: int | None = None,
    min_num_proc: int | None = None,
    max_num_proc: int | None = None,
    hosts: str | Iterable[str] | None = None,
    hostfile: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    start_timeout: float | str | None = None,
    timeout: float | str | None = None,
    ssh_port: int | None = None,
    ssh_identity_file: str | os.PathLike[str] | None = None,
    output_filename: str | os.PathLike[str] | None = None,
    tag_output: str | None = None,
    verbose: bool = False,
    executable: str | None = None,
    results: str = "pickle",
    options: Sequence[str] = (),
) -> list[Any]:
    """Calls func(*args, **kwargs) in `np` new processes, the ranks of one job, and returns their results, in rank
    order.

    func       any function: also a lambda, a closure, or one of a notebook. cloudpickle sends it, its arguments and its
               results.
    np         the number of ranks. None: one for each slot, or one rank if there are no slots.
    min_num_proc, max_num_proc
               make the job elastic (docs/elastic.md): it continues while min_num_proc ranks are left, and has at most
               max_num_proc. The function must contain an elastic.run(). The results are those of the ranks that the job
               has in the end.
    hosts      "a:4,b:4" or ["a:4", "b:4"]; None: the batch system's allocation, else this host.
    hostfile   a file that names them, in place of `hosts`.
    env        variables for every rank, in addition to this process's.
    start_timeout, timeout, ssh_port, ssh_identity_file, output_filename, tag_output, verbose
               the options of the command with these names (docs/manual.md): times in seconds, or "10m"; tag_output="none"
               shows the ranks' output without [rank]<stream>: in front.
    executable the ranks' Python; None: this one. It must have the same version.
    results    "pickle": any object that cloudpickle can send; the ranks' hosts can then run code in this process.
               "json": only numbers, strings, lists and dicts, and nothing that a host sends is unpickled.
    options    more options of the command: ["--bind-to", "core"].

    Blocks until all ranks have ended. Their output appears in sys.stdout and sys.stderr meanwhile. Ctrl-C ends the
    job.

    Errors  RankError: the function raised in a rank. RunError: a rank was killed or left without a result, a
            host could not be reached, or a time limit has passed. ValueError: an argument that the command refuses.
            ImportError without cloudpickle. KeyboardInterrupt, when no process is left. Any exception of pickling the
            function.
    """
    if not callable(func):
        raise TypeError(f"run() takes a function to call, not {func!r}; give its arguments as args=(...)")
    if isinstance(args, (str, bytes)):
        raise TypeError(f"args={args!r} is one value, not a sequence of arguments: args=({args!r},)")
    if results not in ("pickle", "json"):
        raise ValueError(f"results={results!r}: the ranks' results are sent as 'pickle' or as 'json'")
    given = {
        "num_proc": np, "min_num_proc": min_num_proc, "max_num_proc": max_num_proc, "hosts": hosts, "hostfile": hostfile, "start_timeout": start_timeout, "timeout": timeout,
        "ssh_port": ssh_port, "ssh_identity_file": ssh_identity_file, "output_filename": output_filename,
        "tag_output": tag_output, "verbose": verbose,
    }  # fmt: skip
    words = [*run_command.options(given), *run_command.exports(env), *map(os.fspath, options)]

    def command(function: int, socket: int) -> list[str]:
        ranks = run_command.rank_command(executable)
        return [run_command.find(), *words, f"--serve-call={function},{socket}", "--", *ranks]

    with _private_file() as file:
        _write_call(file, func, tuple(args), dict(kwargs or {}), results)
        with Job(command, run_command.environment(env), file.fileno(), sys.stdout, sys.stderr, results) as job:
            return job.finish()


def _private_file() -> BinaryIO:
    """A file without a name, which no other process can open."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("runjob call"), "w+b")
    return tempfile.TemporaryFile()


def _sources_without_files() -> dict[str, list[str]]:
    """The lines of a notebook's cells, by the file names that tracebacks show. The ranks cannot read them from any file."""
    cells = {name: entry for name, entry in linecache.cache.items() if len(entry) == 4 and not os.path.exists(name)}
    return {name: entry[2] for name, entry in cells.items()}


def _write_call(file: BinaryIO, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], results: str) -> None:
    """Writes two pickles: the data that a rank needs before it reads the second one, and the call."""
    try:
        import cloudpickle
    except ImportError:
        raise ImportError(
            f"run() sends functions with cloudpickle, which is not installed: {sys.executable} -m pip install cloudpickle",
            name="cloudpickle",
        ) from None
    caller = {
        "python": platform.python_version_tuple()[:2],
        "path": [os.path.abspath(folder) for folder in sys.path],
        "sources": _sources_without_files(),
        "results": results,
    }
    pickle.dump(caller, file)
    class Pickler(cloudpickle.CloudPickler):  # type: ignore[misc]
        dispatch_table = collections.ChainMap({types.CodeType: _code_with_its_file}, cloudpickle.CloudPickler.dispatch_table)

    Pickler(file, protocol=pickle.HIGHEST_PROTOCOL).dump((func, args, kwargs))
    file.flush()


def _code_with_its_file(code: types.CodeType) -> tuple[Any, ...]:
    """Reduces code as cloudpickle does, with the name of its file, which tracebacks show. cloudpickle 3.1.3 replaces
    the name by another text.
    """
    import cloudpickle

    constructor, arguments = cloudpickle.CloudPickler.dispatch_table[types.CodeType](code)
    return constructor, tuple(code.co_filename if argument == "<dynamic-code>" else argument for argument in arguments)
