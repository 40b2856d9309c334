"""Makes the groups that torch.distributed asks for, and joins the job first.

The job is the one that runjob has started this process in, if torch.distributed's rank and size are those of the job.
Otherwise, under torchrun or torch.multiprocessing, the members of the first group make a job of their own, which they
join over torch.distributed's store.
"""

from __future__ import annotations

import itertools
import os
import threading
from ctypes import byref, c_int32
from typing import Any

import torch.distributed as dist

from ... import basics, communicator, job
from ..._library import library
from ...exchange import Exchange, Exchanger
from .backend import RunjobBackend
from .process_group import RunjobProcessGroup

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
    exchange = _over_store(options.store, rank, size)
    with _lock:
        if not job.is_initialized():
            _join(exchange, rank, size)
            _joined = True
        number = _add(members, exchange)
        kind = RunjobProcessGroup if _is_alone(options) and not _has_hooks() else RunjobBackend
        group = kind(number, members, rank, timeout, f"group {options.group_id}")
        group.on_close = lambda: _leave(group, number)
        _groups.append(group)  # PyTorch's wrapper for debugging keeps the half of the object that is in C++
    return group


def _has_hooks() -> bool:
    """True if PyTorch wraps each group, or attaches to it what checks its tensors: that needs a group of its own."""
    return os.environ.get("TORCH_DISTRIBUTED_DEBUG") == "DETAIL" or os.environ.get("TORCH_DIST_NAN_CHECK") == "1"


def _is_alone(options: Any) -> bool:
    """True for a group without other backends: PyTorch has then told its own group to use a custom one."""
    group = getattr(options, "process_group", None)
    return group is None or group.name() == "custom"


def _join(exchange: Exchange, rank: int, size: int) -> None:
    started_as = (os.environ.get("RUNJOB_RANK"), os.environ.get("RUNJOB_SIZE"))
    if os.environ.get("RUNJOB_RENDEZVOUS") and started_as == (str(rank), str(size)):
        basics.init()
    else:
        communicator.join_over(rank, size, exchange)


def _add(members: list[int], exchange: Exchange) -> int:
    """Adds a process set of these ranks of the job, and returns its number."""
    number, exchanger = c_int32(), Exchanger(exchange)
    array = (c_int32 * len(members))(*members)
    add = library().runjob_process_set_add_members
    try:
        job.call_interruptibly(
            lambda: add(array, len(members), exchanger.function, None, byref(number)), meanwhile=exchanger.serve_until
        )
    except Exception:
        exchanger.raise_error()
        raise
    return number.value


def _over_store(store: Any, rank: int, size: int) -> Exchange:
    """An exchange among the members of a group over its part of torch.distributed's store."""
    numbers = itertools.count()

    def exchange(blob: bytes) -> list[bytes]:
        prefix = f"runjob/{next(numbers)}"
        store.set(f"{prefix}/{rank}", blob)
        return [bytes(store.get(f"{prefix}/{other}")) for other in range(size)]

    return exchange


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
