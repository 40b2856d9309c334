"""The class for a group that has runjob as its only backend. PyTorch uses it in the place of a group of its own, so that a
call passes one layer less, and a Work keeps its methods.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import PrefixStore

from ...exchange import Exchange
from ...torch_version import has_new_backends
from .backend import RunjobBackend
from .operations import Operations
from .store_exchange import over_store
from .work import Label, Work

_CPU = torch.device("cpu")
_ProcessGroup: Any = dist.ProcessGroup  # its types differ between versions of PyTorch, and have no place for None


#: Joins the job of an exchange: the group, its rank and size there, the exchange, its time limit in seconds, the group's
#: name in errors. Returns the process set.
Rejoin = Callable[["RunjobProcessGroup", int, int, Exchange, float, str], int]


def _inner(process_set: int, ranks: Sequence[int], rank: int, timeout: timedelta, label: str) -> Any:
    """The backend that PyTorch asks for: by the devices of a group, for the backend of a device, and to keep a group's name.

    Before 2.14 that must be one in C++. The one of its own that does nothing keeps the name; no call goes there.
    """
    if has_new_backends(torch):
        backend = RunjobBackend(process_set, ranks, rank, timeout, label)
        backend.can_split = True  # PyTorch asks the backend, and then calls split_group() of the group
        return backend
    from torch._C._distributed_c10d import FakeProcessGroup

    return getattr(FakeProcessGroup, "_create_internal", FakeProcessGroup)(rank, len(ranks))


class RunjobProcessGroup(Operations, _ProcessGroup):  # type: ignore[misc]
    """See Operations.open() for the arguments."""

    _rejoin: Rejoin | None = None
    _handle = ""

    def __init__(self, process_set: int, ranks: Sequence[int], rank: int, timeout: timedelta, label: str) -> None:
        _ProcessGroup.__init__(self, rank, len(ranks))
        self.open(process_set, ranks, rank, timeout, label)
        self._inner = _inner(process_set, ranks, rank, timeout, label)
        if hasattr(self, "_set_default_backend"):  # PyTorch 2.4 has no such method
            self._set_default_backend(dist.ProcessGroup.BackendType.CUSTOM)
        self._register_backend(_CPU, dist.ProcessGroup.BackendType.CUSTOM, self._inner)

    def name(self) -> str:
        return "runjob"

    def rank(self) -> int:
        return self._rank

    def size(self) -> int:
        return len(self._ranks)

    getRank, getSize = rank, size

    def get_group_store(self) -> Any:
        return self.store

    def split_group(
        self, new_ranks: list[int], timeout: timedelta | None = None, opts: Any = None, group_name: str | None = None,
        group_desc: str | None = None, device_types: list[torch.device] | None = None,
    ) -> Any:  # fmt: skip
        """A group of some of the ranks, on each of them; None on the others. `new_ranks` are indices in this group."""
        if self._rank not in new_ranks:
            return None
        store = PrefixStore(f"{group_name}/", self.store)
        group = self.on_split(list(new_ranks), timeout or self._timeout, f"group {group_name}", store)
        group._set_group_name(group_name)
        group._set_group_desc(group_desc or f"a part of {self._label}")
        return group

    # Other members: torch.distributed._reconfigure(), from PyTorch 2.15 on.

    def allow_reconfigure(self, rejoin: Rejoin) -> None:
        """The group may get other members, which meet at its store."""
        self._rejoin = rejoin
        self._handle = f"runjob-{secrets.token_hex(8)}"

    def end(self, reason: str) -> None:
        """Later calls raise an error with this reason."""
        self._flights.close(reason)
        self._inner._flights.close(reason)

    @property
    def supports_reconfigure(self) -> bool:
        return self._rejoin is not None

    def get_reconfigure_handle(self) -> str:
        """Names this process among those that call reconfigure()."""
        if self._rejoin is None:
            raise RuntimeError(f"{self._label} keeps its members: only the default group, with runjob as its only backend, can get others")
        return self._handle

    def reconfigure(self, opts: Any) -> Work:
        """Leaves the job and joins another one: that of the processes whose handles are in `opts`. All of them call this with
        the same handles and the same uuid, and meet at the store. A list gives their ranks, a set does not. Operations of
        the group that are in flight end with an error. The Work is done.

        Errors  ValueError if this process's handle is not in `opts`; RuntimeError if other groups exist; WaitTimeoutError
                names the ranks that have not come within the time of `opts`, or the group's; those of init(). The group
                has no members after an error, and reconfigure() may be called again, with another uuid.
        """
        handles = list(opts.handles) if isinstance(opts.handles, list) else sorted(opts.handles)
        if self.get_reconfigure_handle() not in handles:
            raise ValueError(f"reconfigure(): the handle of this process, {self._handle}, is not among {handles}")
        rank, size, limit = handles.index(self._handle), len(handles), (opts.timeout or self._timeout).total_seconds()
        self.end("its members were to change, and the change has failed")
        store = PrefixStore(f"reconfigure/{opts.uuid}", self.store)
        assert self._rejoin is not None
        exchange = over_store(store, rank, size, limit, f"reconfigure() of {self._label}")
        number = self._rejoin(self, rank, size, exchange, limit, self._label)
        kept = self.store, self.on_close, self.on_split
        for each in (self, self._inner):
            each.open(number, range(size), rank, self._timeout, self._label)
        self.store, self.on_close, self.on_split = kept
        return Work(self._flights, [], [], [], None, Label("reconfigure()", 0, self._label), None)

    # The names by which PyTorch calls the same operations, which differ between its versions.
    _allgather_base = Operations.all_gather_single
    allgather_into_tensor_coalesced = Operations.all_gather_single_coalesced
    _reduce_scatter_base = Operations.reduce_scatter_single
    reduce_scatter_tensor_coalesced = Operations.reduce_scatter_single_coalesced
    alltoall_base = Operations.all_to_all_single

    def _start_coalescing(self, device: torch.device) -> None:
        self.start_coalescing()

    def _end_coalescing(self, device: torch.device) -> Any:
        return self.end_coalescing()
