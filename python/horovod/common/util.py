"""horovod.common.util: the functions that scripts import from it."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from runjob import backends

_FRAMEWORKS = ("keras", "tensorflow", "torch")  # each has a module horovod.<name>
_Value = TypeVar("_Value")


def extension_available(ext_base_name: str, verbose: bool = False) -> bool:
    """True if horovod.<ext_base_name> works here: this version has it, and the framework is installed."""
    return ext_base_name in _FRAMEWORKS and importlib.util.find_spec(ext_base_name) is not None


def check_extension(ext_name: str, ext_env_var: str, pkg_path: str, *args: Any) -> None:
    """Errors  ImportError if extension_available() is false for `ext_name`. A package prefix of `ext_name` is ignored."""
    framework = ext_name.rsplit(".", 1)[-1]
    if extension_available(framework):
        return
    why = f"{framework} is not installed" if framework in _FRAMEWORKS else "this version of runjob has no module for it"
    raise ImportError(f"horovod.{framework} cannot be used: {why}")


def gpu_available(ext_base_name: str, verbose: bool = False) -> bool:
    """True if collectives take GPU tensors of that framework."""
    return extension_available(ext_base_name) and backends.nccl_built() > 0


def gloo_built(verbose: bool = False) -> bool:
    """True if the library can open Gloo's backend, which moves data between hosts over TCP."""
    return backends.gloo_built()


def mpi_built(verbose: bool = False) -> bool:
    """True if the library has the MPI backend."""
    return backends.mpi_built()


def nccl_built(verbose: bool = False) -> int:
    """NCCL's version code, 0 without NCCL."""
    return backends.nccl_built()


def ddl_built(verbose: bool = False) -> bool:
    """False: IBM's DDL is gone."""
    return backends.ddl_built()


def ccl_built(verbose: bool = False) -> bool:
    """False: there is no oneCCL backend."""
    return backends.ccl_built()


@contextlib.contextmanager
def env(**kwargs: Any) -> Iterator[None]:
    """Sets environment variables for the duration of a `with`. None removes a variable."""
    before = {name: os.environ.get(name) for name in kwargs}
    _set_environment(kwargs)
    try:
        yield
    finally:
        _set_environment(before)


def _set_environment(variables: dict[str, Any]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = str(value)


def _cache(f: Callable[..., _Value]) -> Callable[..., _Value]:
    """A decorator that remembers the value that `f` has returned, for each list of arguments."""
    return functools.lru_cache(maxsize=None)(f)


def split_list(l: Sequence[_Value], n: int) -> list[Sequence[_Value]]:  # noqa: E741
    """`l` in `n` parts of the same length, except that the first ones may have one element more."""
    length, longer = divmod(len(l), n)
    firsts = [i * length + min(i, longer) for i in range(n + 1)]
    return [l[first:end] for first, end in zip(firsts, firsts[1:])]


def num_rank_is_power_2(num_rank: int) -> bool:
    """True if `num_rank` is a power of two."""
    return num_rank > 0 and num_rank & (num_rank - 1) == 0


def is_version_greater_equal_than(ver: str, target: str) -> bool:
    """True if version `ver` is `target`, which has the form 1.2.3, or newer. Errors  ValueError for another form."""
    if not re.fullmatch(r"\d+\.\d+\.\d+", target):
        raise ValueError(f"target version {target!r} is not of the form 1.2.3")
    return _numbers(ver) >= _numbers(target)


def _numbers(version: str) -> tuple[int, ...]:
    """The first three numbers of a version, with zeros for missing ones: 2.1.0+cpu gives 2, 1, 0."""
    numbers = [int(digits) for digits in re.findall(r"\d+", re.split(r"[+-]", version)[0])[:3]]
    return (*numbers, 0, 0, 0)[:3]


def is_iterable(x: Any) -> bool:
    """True if `x` can be iterated over."""
    try:
        iter(x)
    except TypeError:
        return False
    return True
