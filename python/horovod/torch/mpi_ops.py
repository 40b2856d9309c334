"""horovod.torch.mpi_ops: the operations of runjob.torch, and the other names that scripts import from Horovod's module."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch

from horovod.common import basics as _basics  # noqa: F401  scripts ask it for the process sets
from horovod.common.util import check_extension as check_extension
from horovod.common.util import gpu_available as _gpu_available
from horovod.common.util import num_rank_is_power_2 as num_rank_is_power_2
from runjob import handles, reduce_ops
from runjob.torch import *  # noqa: F403
from runjob.torch import Compression as Compression
from runjob.torch import ProcessSet, allreduce_async_, global_process_set
from runjob.torch.differentiable import HorovodAllgather as HorovodAllgather
from runjob.torch.differentiable import HorovodAllreduce as HorovodAllreduce
from runjob.torch.differentiable import HorovodAlltoall as HorovodAlltoall
from runjob.torch.differentiable import HorovodBroadcast as HorovodBroadcast
from runjob.torch.differentiable import HorovodReducescatter as HorovodReducescatter
from runjob.torch.grouped import HorovodGroupedAllgather as HorovodGroupedAllgather
from runjob.torch.grouped import HorovodGroupedAllreduce as HorovodGroupedAllreduce
from runjob.torch.grouped import HorovodGroupedReducescatter as HorovodGroupedReducescatter


def gpu_available(ext_base_name: str = "torch", verbose: bool = False) -> bool:
    """True if collectives take GPU tensors of that framework."""
    return _gpu_available(ext_base_name, verbose)


def handle_average_backwards_compatibility(op: int | None, average: bool | None) -> int:
    """The reduction that `op` and the deprecated `average` mean together. Errors  as runjob.reduce_ops.resolve()."""
    return reduce_ops.resolve(op, average)


def _allreduce_async(
    tensor: torch.Tensor, output: torch.Tensor, name: str | None, op: int, prescale_factor: float = 1.0,
    postscale_factor: float = 1.0, process_set: ProcessSet = global_process_set,
) -> int:  # fmt: skip
    """Starts an allreduce of `tensor` into `output`, which may be `tensor` itself; returns a handle."""
    if output is not tensor:
        output.detach().copy_(tensor.detach())
    return allreduce_async_(
        output, name=name, op=op, prescale_factor=prescale_factor, postscale_factor=postscale_factor, process_set=process_set
    )


class _HandleMap(Mapping[int, "tuple[Any, ...]"]):
    """The tensors of each operation that has been started and not yet synchronized, by its handle."""

    def __getitem__(self, handle: int) -> tuple[Any, ...]:
        return handles.in_flight()[handle].tensors

    def __iter__(self) -> Iterator[int]:
        return iter(list(handles.in_flight()))

    def __len__(self) -> int:
        return len(handles.in_flight())


_handle_map = _HandleMap()
