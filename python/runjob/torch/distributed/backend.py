"""The class for a group that has a backend for each device, as "cpu:runjob,cuda:nccl", and for one with hooks. PyTorch
calls it through a group of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import torch
from torch._C._distributed_c10d import Backend as _Backend

from .operations import Operations


class RunjobBackend(Operations, _Backend):
    """See Operations.open() for the arguments."""

    #: PyTorch calls split() of a backend also on ranks that are no members, and crashes if that returns None.
    can_split = False

    def __init__(self, process_set: int, ranks: Sequence[int], rank: int, timeout: timedelta, label: str) -> None:
        try:
            _Backend.__init__(self, rank, len(ranks))
        except TypeError:  # only backends in C++ can be made
            raise RuntimeError(
                f"a group with a backend for each device, or with hooks such as TORCH_DISTRIBUTED_DEBUG=DETAIL, needs PyTorch 2.14 or "
                f"later; this is {torch.__version__}"
            ) from None
        self.open(process_set, ranks, rank, timeout, label)

    @property
    def options(self) -> _Backend.Options:
        return _Backend.Options("runjob", self._timeout)

    # PyTorch reads each of these properties through the class of the object, and without an answer it recurses.

    @property
    def supports_splitting(self) -> bool:
        return self.can_split

    @property
    def supports_coalescing(self) -> bool:
        return True

    @property
    def supports_shrinking(self) -> bool:
        return False

    @property
    def supports_reconfigure(self) -> bool:
        return False

    @property
    def supports_window(self) -> bool:
        return False

    @property
    def _supports_time_estimate(self) -> bool:
        return False
