"""Makes the groups that torch.distributed asks for, and joins the job first.

The job is the one that runjob has started this process in, if torch.distributed's rank and size are those of the job.
Otherwise, under torchrun or torch.multiprocessing, the members of the first group make a job of their own, which they
join over torch.distributed's store.
"""

from __future__ import annotations

import os
import threading
from ctypes import byref, c_int32
from datetime import timedelta
from typing import Any

import torch.distributed as dist
from torch._C._distributed_c10d import DebugLevel, get_debug_level

from ... import basics, communicator, job
from ..._library import library
from ...exchange import Exchange
from .backend import RunjobBackend
from .process_group import RunjobProcessGroup
from .store_exchange import over_store

#: The time after which an exchange is given up that does not keep its own limit, in seconds.
_GRACE = 5.0

_lock = threading.Lock()
_groups: list[Any] = []  # those that are not destroyed
_joined = False  # True if a group has joined the job, so that the last one leaves it


def create(options: Any, backend_options: Any = None) -> RunjobProcessGroup | RunjobBackend:
    """The function that torch.distributed calls for each group, on its members. `options` is its
    _DistributedBackendOptions.
    """
    global _joined
    rank, size, timeout = options.group_rank, options.group_size, options.timeout
    members = list(options.global_ranks_in_group) or list(range(size))
    limit, label = timeout.total_seconds(), f"group {options.group_id}"
    exchange = over_store(options.store, rank, size, limit, label)
    kind = RunjobProcessGroup if _is_alone(options) and not _has_hooks() else RunjobBackend
    is_default = not options.global_ranks_in_group
    if is_default and kind is RunjobProcessGroup and getattr(options, "enable_reconfigure", False):
        waiting = RunjobProcessGroup(0, members, rank, timeout, label)
        waiting.store = options.store
        waiting.allow_reconfigure(rejoin)
        waiting.end("it has no members until torch.distributed._reconfigure() gives it some")
        return waiting
    with _lock:
        if not job.is_initialized():
            _join(exchange, rank, size, limit)
            _joined = True
        _check_rank(members, rank)
        number = _add(members, exchange, label, limit)
        group = _open(kind, number, members, rank, timeout, label, options.store)
        if is_default and isinstance(group, RunjobProcessGroup):
            group.allow_reconfigure(rejoin)
        return group


def _open(
    kind: Any, number: int, members: list[int], rank: int, timeout: timedelta, label: str, store: Any
) -> RunjobProcessGroup | RunjobBackend:  # fmt: skip
    """A group of the class `kind` over the library's set `number`. It is kept until it is destroyed, because PyTorch's
    wrapper for debugging keeps the half of the object that is in C++ only.
    """
    group: RunjobProcessGroup | RunjobBackend = kind(number, members, rank, timeout, label)
    group.store = store
    _attach(group, number, members, rank)
    _groups.append(group)
    return group


def _attach(group: Any, number: int, members: list[int], rank: int) -> None:
    """Sets what the group calls of this module."""
    group.on_close = lambda: _leave(group, number)
    group.on_split = lambda indices, *rest: _split(type(group), [members[index] for index in indices], indices.index(rank), *rest)


def _split(kind: Any, members: list[int], rank: int, timeout: timedelta, label: str, store: Any) -> Any:
    """A group of some members of another one, which meet at `store`: no other group meets there."""
    limit = timeout.total_seconds()
    with _lock:
        number = _add(members, over_store(store, rank, len(members), limit, label), label, limit)
        return _open(kind, number, members, rank, timeout, label, store)


def _check_rank(members: list[int], rank: int) -> None:
    """Errors  ValueError if torch.distributed's rank is not the one of the job that this process is in already."""
    if members[rank] != job.rank():
        raise ValueError(
            f"this process is rank {job.rank()} of the {job.size()} ranks of a job of runjob, and cannot be rank {members[rank]} of "
            "torch.distributed: call init_process_group() with the job's rank and size, or leave the job before, with shutdown()"
        )


def rejoin(group: RunjobProcessGroup, rank: int, size: int, exchange: Exchange, limit: float, label: str) -> int:
    """Leaves the job, if this process is in one, and joins that of the `size` processes of the exchange. Returns the number
    of the process set of all of them.

    Errors  RuntimeError if other groups of this process exist; those of communicator.join_over().
    """
    global _joined
    with _lock:
        if others := [each for each in _groups if each is not group]:
            raise RuntimeError(f"reconfigure(): {len(others)} other groups of this process exist: destroy them first")
        job.shutdown()
        _joined = False
        communicator.join_over(rank, size, exchange, limit=limit + _GRACE)
        _joined = True
        members = list(range(size))
        number = _add(members, exchange, label, limit)
        _attach(group, number, members, rank)
        _groups[:] = [group]
        return number


def _has_hooks() -> bool:
    """True if PyTorch wraps each group, or attaches to it what checks its tensors or records its calls: that needs a group
    of its own. It attaches a recorder without being asked, which is no reason to make every call slower.
    """
    is_recorded = any(os.environ.get(name, "") not in ("", "0") for name in ("TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE"))
    return get_debug_level() == DebugLevel.DETAIL or os.environ.get("TORCH_DIST_NAN_CHECK") == "1" or is_recorded


def _is_alone(options: Any) -> bool:
    """True for a group without other backends: PyTorch has then told its own group to use a custom one."""
    group = getattr(options, "process_group", None)
    return group is None or (group.name() == "custom" and not group._device_types)


def _join(exchange: Exchange, rank: int, size: int, limit: float) -> None:
    started_as = (os.environ.get("RUNJOB_RANK"), os.environ.get("RUNJOB_SIZE"))
    if os.environ.get("RUNJOB_RENDEZVOUS") and started_as == (str(rank), str(size)):
        basics.init()
    else:
        communicator.join_over(rank, size, exchange, limit=limit + _GRACE)


def _add(members: list[int], exchange: Exchange, label: str, limit: float) -> int:
    """Adds a process set of these ranks of the job, and returns its number."""
    number = c_int32()
    array = (c_int32 * len(members))(*members)
    add = library().runjob_process_set_add_members
    call = lambda function: add(array, len(members), function, None, byref(number))  # noqa: E731
    communicator.call_over(exchange, f"the exchange of the new {label},", call, job.call_interruptibly, limit + _GRACE)
    return number.value


def _leave(group: Any, number: int) -> None:
    """Removes the set of a group that is destroyed. The job ends with its last group, if a group has joined it."""
    global _joined
    with _lock:
        _groups.remove(group)
        if job.is_initialized():
            job.check(library().runjob_process_set_remove(number))
        if not _groups and _joined:
            _joined = False
            job.shutdown()


def register(name: str = "runjob") -> None:
    """Registers the backend with torch.distributed. May be called again."""
    if name not in dist.Backend.backend_list:
        dist.Backend.register_backend(name, create, extended_api=True, devices=["cpu", "cuda"])
