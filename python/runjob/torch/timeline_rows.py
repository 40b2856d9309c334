"""Rows for gradients in the timeline. Each shows the reduction that contained the gradient, under the name that Horovod
gives it.
"""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import addressof, c_char_p, c_int64

import torch

from .. import process_sets
from .._library import Tensor, library
from ..job import check
from ..process_sets import ProcessSet
from .tensors import DTYPES


def are_recorded() -> bool:
    """True on rank 0 while it records a timeline."""
    return bool(library().runjob_timeline_records_tensors())


def show(
    operation: str, names: Sequence[str], shapes: Sequence[torch.Size], since: Sequence[int], dtype: torch.dtype,
    process_set: ProcessSet,
) -> None:  # fmt: skip
    """Gives each gradient a row with the events of the allreduce `operation`, which is submitted next.

    since  the time when each gradient was completed, in nanoseconds of time.monotonic_ns(). 0: unknown.
    """
    if dtype not in DTYPES:  # the library gets such a tensor in another form
        return
    count = len(names)
    rows = (c_char_p * count)(*(f"allreduce.{name}".encode() for name in names))
    tensors = (Tensor * count)()
    extents = [(c_int64 * max(len(shape), 1))(*shape) for shape in shapes]
    for tensor, shape, extent in zip(tensors, shapes, extents):
        tensor.shape, tensor.ndim, tensor.dtype = addressof(extent), len(shape), DTYPES[dtype]
    check(
        library().runjob_timeline_tensors(
            f"allreduce.{operation}".encode(), rows, tensors, (c_int64 * count)(*since), count,
            process_sets.identifier(process_set),
        )
    )  # fmt: skip
