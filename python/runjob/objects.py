"""Sends Python objects between the ranks, without a framework.

Objects travel as pickles, and unpickling runs code of the sender's choice. Each has a proof (runjob_object_proof() in runjob.h)
that a rank of this job has sent these bytes in this call, and nothing is unpickled without it. docs/security.md has the rest.
"""

from __future__ import annotations

import ctypes
import hmac
import math
import pickle
import struct
from collections.abc import Sequence
from typing import Any

from . import handles, job
from ._library import library
from .arrays import Arrays, c_array
from .calls import Calls
from .dtypes import NUMBERS
from .exceptions import HorovodInternalError
from .process_sets import ProcessSet, global_process_set, identifier

_PROOF_BYTES = 32  # RUNJOB_PROOF_BYTES


def broadcast_object(
    obj: Any = None, root_rank: int = 0, name: str | None = None, process_set: ProcessSet = global_process_set
) -> Any:
    """root_rank's `obj` on every rank. The `obj` of other ranks is ignored. On root_rank the result is `obj` itself.

    obj     any object that pickle takes, or cloudpickle where it is installed.
    Errors  those of pickle; HorovodInternalError and its kinds, also if the object was changed on the way.
    """
    name = name or "object"
    is_root = job.rank() == root_rank
    pickled = dumps(obj) if is_root else b""
    length = bytearray(struct.pack("=q", len(pickled) + _PROOF_BYTES))
    handles.run(calls.broadcast(length, root_rank, f"{name}.sz", process_set, in_place=True))
    number = _number(name, process_set)
    payload = _proven(pickled, name, process_set, number) if is_root else bytearray(*struct.unpack("=q", length))
    handles.run(calls.broadcast(payload, root_rank, f"{name}.t", process_set, in_place=True))
    return obj if is_root else _loads(payload, name, process_set, root_rank, number)


def allgather_object(obj: Any, name: str | None = None, process_set: ProcessSet = global_process_set) -> list[Any]:
    """The `obj` of every rank of the set, in rank order. Each is a copy, this rank's own too.

    obj     any object that pickle takes, or cloudpickle where it is installed.
    Errors  those of pickle; HorovodInternalError and its kinds, also if an object was changed on the way.
    """
    name = name or "object"
    pickled = dumps(obj)
    length = bytearray(struct.pack("=q", len(pickled) + _PROOF_BYTES))
    lengths = handles.run(calls.allgather(length, f"{name}.sz", process_set))
    number = _number(name, process_set)
    payload = _proven(pickled, name, process_set, number)
    payloads = memoryview(handles.run(calls.allgather(payload, f"{name}.t", process_set)))
    objects, first = [], 0
    ranks = process_set.ranks or range(job.size())
    for sender, (length,) in zip(ranks, struct.iter_unpack("=q", lengths), strict=True):
        objects.append(_loads(payloads[first : first + length], name, process_set, sender, number))
        first += length
    return objects


def _number(name: str, process_set: ProcessSet) -> int:
    """The number of this call, which is the same on all ranks, and differs for each call.

    It is called when the ranks have exchanged the lengths: a call that fails before that, on one rank or on several, is
    not counted.
    """
    number = ctypes.c_int64()
    job.check(library().runjob_object_number(name.encode(), identifier(process_set), ctypes.byref(number)))
    return number.value


def _proof(payload: bytearray | memoryview, name: str, process_set: ProcessSet, sender: int, number: int) -> bytes:
    proof = (ctypes.c_ubyte * _PROOF_BYTES)()
    lent = (ctypes.c_ubyte * len(payload)).from_buffer(payload)  # not copied: an object may be large
    job.check(library().runjob_object_proof(name.encode(), identifier(process_set), sender, number, lent, len(payload), proof))
    return bytes(proof)


def _proven(payload: bytes, name: str, process_set: ProcessSet, number: int) -> bytearray:
    """The pickle of this rank, followed by its proof."""
    proven = bytearray(payload)
    proven += _proof(proven, name, process_set, job.rank(), number)
    return proven


def _loads(received: bytearray | memoryview, name: str, process_set: ProcessSet, sender: int, number: int) -> Any:
    whole = memoryview(received)
    payload, proof = whole[:-_PROOF_BYTES], bytes(whole[-_PROOF_BYTES:])
    if not hmac.compare_digest(proof, _proof(payload, name, process_set, sender, number)):
        raise HorovodInternalError(
            f"object '{name}': the bytes that rank {job.rank()} has received are not those that rank {sender} has sent; somebody on "
            "the network has changed them, and nothing was unpickled. --encrypt-data protects everything that ranks send"
        )
    return pickle.loads(payload)


def dumps(obj: Any) -> bytes:
    """A pickle of `obj`, made by cloudpickle where it is installed."""
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
