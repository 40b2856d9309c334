"""Sparse tensors, which are reduced by gathering their entries."""

from __future__ import annotations

from typing import Callable

import torch

from .. import reduce_ops
from ..handles import synchronize
from ..process_sets import ProcessSet, global_process_set
from ..reduce_ops import Adasum, Average, Sum
from .operations import allgather_async


def sparse_allreduce_async(
    tensor: torch.Tensor, name: str, op: int, process_set: ProcessSet = global_process_set
) -> Callable[[], torch.Tensor]:
    """Starts the reduction of a sparse COO tensor. Returns a function that waits for the result: a new sparse tensor
    with the entries of all ranks, not coalesced.

    Shape    the same on all ranks. Each may have any number of entries.
    op       Sum or Average, which divides by the number of ranks.
    Errors   ValueError for another op or a tensor that is not sparse; RuntimeError for Adasum. The function raises those of
             synchronize().
    Cost     every rank gets the entries of all, whose number grows with that of the ranks.
    """
    if op == Adasum:
        raise RuntimeError("sparse_allreduce_async does not take op=Adasum; make the tensor dense by tensor.to_dense()")
    if reduce_ops.resolve(op, None) not in (Average, Sum):
        raise ValueError(f"sparse_allreduce_async takes op=Average or op=Sum, not {op!r}")
    if not (isinstance(tensor, torch.Tensor) and tensor.is_sparse):
        raise ValueError("sparse_allreduce_async takes a sparse COO tensor; allreduce_async() is for others")
    indices = allgather_async(tensor._indices().t().contiguous(), f"{name}.indices", process_set)
    values = allgather_async(tensor._values(), f"{name}.values", process_set)

    def wait() -> torch.Tensor:
        try:
            all_values = synchronize(values)
        finally:
            all_indices = synchronize(indices)
        if op == Average:
            all_values = all_values / process_set.size()
        return torch.sparse_coo_tensor(all_indices.t(), all_values, tensor.shape, check_invariants=False)

    return wait
