"""The ways in which allreduce combines the ranks' values: runjob_reduce_op of runjob.h, and the rules for the
deprecated `average=`.
"""

from __future__ import annotations

import warnings

Average = 0
Sum = 1
Adasum = 2
Min = 3
Max = 4
Product = 5


def resolve(op: int | None, average: bool | None) -> int:
    """The operation that `op=` and the deprecated `average=` specify together. Without either it is Average.

    Errors  ValueError if both are given, or for an unknown op.
    """
    if average is not None:
        if op is not None:
            raise ValueError("op= and average= were both given; give only op=")
        warnings.warn("average= is deprecated: use op=Average or op=Sum", DeprecationWarning, stacklevel=3)
        return Average if average else Sum
    if op is None:
        return Average
    if op not in (Average, Sum, Adasum, Min, Max, Product):
        raise ValueError(f"op={op!r} is no reduction; use one of Average, Sum, Adasum, Min, Max, Product")
    return int(op)


def check_adasum(operation: str, dtype: str) -> None:
    """Checks the dtype of a tensor for op=Adasum, by its name. Errors  RuntimeError, as Horovod raises, unless it is a float."""
    if dtype not in ("float16", "bfloat16", "float32", "float64"):
        raise RuntimeError(f"{operation}: op=Adasum takes floating-point tensors, not {dtype}; convert the tensor to float32")


def check_scattered(op: int) -> None:
    """Checks the op of a reducescatter. Errors  RuntimeError, as Horovod raises, for Adasum."""
    if op == Adasum:
        raise RuntimeError("reducescatter does not take op=Adasum; use allreduce, or another op")
