"""Collectives on values, outside of functions. They take NumPy arrays, numbers and tensors, and return NumPy arrays."""

from __future__ import annotations

from typing import Any

from ... import reduce_ops
from ...compression import Compressor
from ...reduce_ops import Average, Sum
from .. import operations
from ..compression import Compression


def allreduce(
    value: Any, name: str | None = None, average: bool | None = None, prescale_factor: float = 1.0,
    postscale_factor: float = 1.0, op: int | None = None, compression: type[Compressor] = Compression.none,
) -> Any:  # fmt: skip
    """The ranks' values combined, element by element: averaged, or summed with op=Sum. Errors  ValueError for another op."""
    op = _checked(reduce_ops.resolve(op, average))
    return operations.allreduce(
        value, name=name, op=op, compression=compression, prescale_factor=prescale_factor, postscale_factor=postscale_factor
    ).numpy()


def allgather(value: Any, name: str | None = None) -> Any:
    """Concatenates the ranks' values along dimension 0, in rank order."""
    return operations.allgather(value, name=name).numpy()


def broadcast(value: Any, root_rank: int, name: str | None = None) -> Any:
    """Returns root_rank's value on every rank."""
    return operations.broadcast(value, root_rank, name=name).numpy()


def reducescatter(value: Any, name: str | None = None, op: int = Average) -> Any:
    """Combines the values as allreduce() does. Each rank gets a part of the rows, rank 0 the first."""
    return operations.reducescatter(value, name=name, op=_checked(op)).numpy()


def _checked(op: int) -> int:
    if op not in (Average, Sum):
        raise ValueError(f"op={op!r}: with Keras, give op=Average or op=Sum")
    return op
