"""Python objects among the ranks, without a framework.

Objects travel as pickles, and unpickling runs code of the sender's choice. They go over the job's own connections only, whose
ends prove the job's key when they connect; between hosts these connections are encrypted only with --encrypt-data. docs/security.md has the rest.
"""

from __future__ import annotations

import ctypes
import math
import pickle
import struct
from collections.abc import Sequence
from typing import Any

from . import handles, job
from .arrays import Arrays, c_array
from .calls import Calls
from .dtypes import NUMBERS
from .process_sets import ProcessSet, global_process_set


def broadcast_object(
    obj: Any = None, root_rank: int = 0, name: str | None = None, process_set: ProcessSet = global_process_set
) -> Any:
    """root_rank's `obj` on every rank; what the others pass is not looked at. On root_rank it is `obj` itself.

    obj     anything that pickle takes; where cloudpickle is installed, what that takes.
    Errors  pickle's; HorovodInternalError and its kinds.
    """
    name = name or "object"
    is_root = job.rank() == root_rank
    payload = bytearray(_dumps(obj)) if is_root else bytearray()
    length = bytearray(struct.pack("=q", len(payload)))
    handles.run(calls.broadcast(length, root_rank, f"{name}.sz", process_set, in_place=True))
    if not is_root:
        payload = bytearray(*struct.unpack("=q", length))
    handles.run(calls.broadcast(payload, root_rank, f"{name}.t", process_set, in_place=True))
    return obj if is_root else pickle.loads(payload)


def allgather_object(obj: Any, name: str | None = None, process_set: ProcessSet = global_process_set) -> list[Any]:
    """The `obj` of every rank of the set, in rank order. Each is a copy, this rank's own too.

    obj     anything that pickle takes; where cloudpickle is installed, what that takes.
    Errors  pickle's; HorovodInternalError and its kinds.
    """
    name = name or "object"
    payload = bytearray(_dumps(obj))
    lengths = handles.run(calls.allgather(bytearray(struct.pack("=q", len(payload))), f"{name}.sz", process_set))
    payloads = memoryview(handles.run(calls.allgather(payload, f"{name}.t", process_set)))
    objects, first = [], 0
    for (length,) in struct.iter_unpack("=q", lengths):
        objects.append(pickle.loads(payloads[first : first + length]))
        first += length
    return objects


def _dumps(obj: Any) -> bytes:
    try:
        import cloudpickle  # also takes lambdas and classes of __main__
    except ImportError:
        return pickle.dumps(obj)
    return bytes(cloudpickle.dumps(obj))


class _Bytes(Arrays[bytearray]):
    """bytearray as an array of uint8."""

    def dense(self, array: Any, operation: str) -> bytearray:
        return array  # type: ignore[no-any-return]

    def in_place(self, array: Any, operation: str) -> bytearray:
        return array  # type: ignore[no-any-return]

    def copy(self, array: Any, operation: str) -> bytearray:
        return bytearray(array)

    def empty(self, shape: Sequence[int], like: bytearray) -> bytearray:
        return bytearray(math.prod(shape))

    def empty_like(self, array: bytearray) -> bytearray:
        return bytearray(len(array))

    def cut(self, array: bytearray, shape: Sequence[int]) -> bytearray:
        del array[shape[0] :]
        return array

    def splits(self, rows: list[int]) -> bytearray:
        return bytearray(struct.pack(f"={len(rows)}i", *rows))

    def address(self, array: bytearray) -> int:
        return ctypes.addressof(ctypes.c_char.from_buffer(array)) if array else 0

    def nbytes(self, array: bytearray) -> int:
        return len(array)

    def shape(self, array: bytearray) -> tuple[int, ...]:
        return (len(array),)

    def form(self, array: bytearray) -> tuple[Any, int, int]:
        return c_array((len(array),)), 1, NUMBERS["uint8"]

    def is_array(self, value: object) -> bool:
        return isinstance(value, bytearray)


calls = Calls(_Bytes())
