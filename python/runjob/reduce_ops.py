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

    Errors  ValueError if both are given, or for an unknown op; NotImplementedError for Adasum.
    """
    if average is not None:
        if op is not None:
            raise ValueError("op= and average= were both given; give only op=")
        warnings.warn("average= is deprecated: use op=Average or op=Sum", DeprecationWarning, stacklevel=3)
        return Average if average else Sum
    if op is None:
        return Average
    if op == Adasum:
        raise NotImplementedError("op=Adasum is not in this version of runjob; it comes with a later one")
    if op not in (Average, Sum, Min, Max, Product):
        raise ValueError(f"op={op!r} is no reduction; use one of Average, Sum, Min, Max, Product")
    return int(op)
