"""Makes the groups that torch.distributed asks for, and joins the job first.

The job is the one that runjob has started this process in, if torch.distributed's rank and size are those of the job.
Otherwise, under torchrun or torch.multiprocessing, the members of the first group make a job of their own, which they
join over torch.distributed's store.
"""

from __future__ import annotations

import os
import socket
import threading
from datetime import timedelta
from typing import Any

import torch.distributed as dist

from ... import basics, communicator, job
from ..._library import library
from .backend import RunjobBackend
from .process_group import RunjobProcessGroup

_lock = threading.Lock()
_open = 0  # the groups of the job that the first of them has joined
_joined = False  # True if a group has joined the job, so that the last one leaves it


def create(options: Any, backend_options: Any = None) -> RunjobProcessGroup | RunjobBackend:
    """The function that torch.distributed calls for each group, on its members. `options` is its
    _DistributedBackendOptions.
    """
    global _open, _joined
    rank, size = options.group_rank, options.group_size
    members = list(options.global_ranks_in_group) or list(range(size))
    with _lock:
        if not job.is_initialized():
            _join(options.store, rank, size, options.timeout)
            _joined = True
        if len(members) != job.size() or members != sorted(members):
            raise ValueError(f"runjob: the group of the ranks {members} is not the whole job, which has {job.size()} ranks")
        _open += 1
    label = f"group {options.group_id}"
    kind = RunjobProcessGroup if _is_alone(options) else RunjobBackend
    group = kind(0, members, rank, options.timeout, label)
    group.on_close = _leave
    return group


def _is_alone(options: Any) -> bool:
    """True for a group without other backends: PyTorch has then told its own group to use a custom one."""
    group = getattr(options, "process_group", None)
    return group is None or group.name() == "custom"


def _join(store: Any, rank: int, size: int, timeout: timedelta) -> None:
    environment = os.environ
    if environment.get("RUNJOB_RENDEZVOUS") and (environment.get("RUNJOB_RANK"), environment.get("RUNJOB_SIZE")) == (str(rank), str(size)):
        basics.init()
        return
    from ...launch.relay import Place

    number = iter(range(1_000_000))

    def exchange(blob: bytes) -> list[bytes]:
        key = f"runjob/{next(number)}"
        store.set(f"{key}/{rank}", blob)
        return [bytes(store.get(f"{key}/{other}")) for other in range(size)]

    names = exchange(f"{_host_identity()} {socket.gethostname()}".encode())
    hosts = sorted(set(names), key=names.index)
    place = Place(
        rank, [hosts.index(name) for name in names], [name.decode().rsplit(" ", 1)[1] for name in hosts], timeout.total_seconds()
    )
    communicator._join(place, exchange, library().runjob_init)


def _host_identity() -> str:
    """A text that is equal in processes that share memory."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as boot:
        return f"{boot.read().strip()}-{os.stat('/dev/shm').st_dev}-{os.readlink('/proc/self/ns/net')}"


def _leave() -> None:
    """Leaves the job with its last group, if a group has joined it."""
    global _open, _joined
    with _lock:
        _open -= 1
        if _open == 0 and _joined:
            _joined = False
            job.shutdown()


def register(name: str = "runjob") -> None:
    """Registers the backend with torch.distributed. May be called again."""
    if name not in dist.Backend.backend_list:
        dist.Backend.register_backend(name, create, extended_api=True, devices=["cpu", "cuda"])
