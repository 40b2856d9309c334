"""Collectives on values. They take NumPy arrays, numbers and tensors, and return NumPy arrays."""

from __future__ import annotations

from typing import Any

import keras
import torch

from ... import reduce_ops
from ... import torch as operations
from ...compression import Compressor
from ...reduce_ops import Average, Sum


def allreduce(
    value: Any, name: str | None = None, average: bool | None = None, prescale_factor: float = 1.0,
    postscale_factor: float = 1.0, op: int | None = None,
    compression: type[Compressor] = operations.Compression.none,
) -> Any:  # fmt: skip
    """The ranks' values combined, element by element: averaged, or summed with op=Sum. Errors  ValueError for another op."""
    op = _checked(reduce_ops.resolve(op, average))
    return operations.allreduce(
        _tensor(value), name=name, op=op, compression=compression, prescale_factor=prescale_factor, postscale_factor=postscale_factor
    ).numpy()


def allgather(value: Any, name: str | None = None) -> Any:
    """Concatenates the ranks' values along dimension 0, in rank order."""
    return operations.allgather(_tensor(value), name=name).numpy()


def broadcast(value: Any, root_rank: int, name: str | None = None) -> Any:
    """Returns root_rank's value on every rank."""
    return operations.broadcast(_tensor(value), root_rank, name=name).numpy()


def reducescatter(value: Any, name: str | None = None, op: int = Average) -> Any:
    """Combines the values as allreduce() does. Each rank gets a part of the rows, rank 0 the first."""
    return operations.reducescatter(_tensor(value), name=name, op=_checked(op)).numpy()


def broadcast_global_variables(root_rank: int) -> None:
    """Errors  RuntimeError: PyTorch has no list of all variables."""
    raise RuntimeError(
        "broadcast_global_variables() is for graphs of TensorFlow 1; with Keras give model.fit() "
        "callbacks=[hvd.callbacks.BroadcastGlobalVariablesCallback(0)]"
    )


def _tensor(value: Any) -> torch.Tensor:
    """The value as a tensor on the CPU. Numbers of Python become float32 and int64, as PyTorch takes them."""
    if isinstance(value, (torch.Tensor, keras.Variable)):
        value = keras.ops.convert_to_numpy(value)
    return torch.as_tensor(value)


def _checked(op: int) -> int:
    if op not in (Average, Sum):
        raise ValueError(f"op={op!r}: with Keras, give op=Average or op=Sum")
    return op
