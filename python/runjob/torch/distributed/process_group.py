"""The class for a group that has runjob as its only backend. PyTorch uses it in the place of a group of its own, so that a
call passes one layer less, and a Work keeps its methods.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from .backend import RunjobBackend
from .operations import Operations

_CPU = torch.device("cpu")
_ProcessGroup: Any = dist.ProcessGroup  # its types differ between versions of PyTorch, and have no place for None


class RunjobProcessGroup(Operations, _ProcessGroup):  # type: ignore[misc]
    """See Operations.open() for the arguments."""

    def __init__(self, process_set: int, ranks: Sequence[int], rank: int, timeout: timedelta, label: str) -> None:
        _ProcessGroup.__init__(self, rank, len(ranks))
        self.open(process_set, ranks, rank, timeout, label)
        # PyTorch asks for the devices of a group, and for the backend of a device.
        self._inner = RunjobBackend(process_set, ranks, rank, timeout, label)
        self._set_default_backend(dist.ProcessGroup.BackendType.CUSTOM)
        self._register_backend(_CPU, dist.ProcessGroup.BackendType.CUSTOM, self._inner)

    def name(self) -> str:
        return "runjob"

    def rank(self) -> int:
        return self._rank

    def size(self) -> int:
        return len(self._ranks)

    getRank, getSize = rank, size

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
