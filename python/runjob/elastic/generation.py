"""The generation of an elastic job that this process is in, and the launcher's requests to its members."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import addressof, byref, c_char, c_int32, c_int64, c_void_p

from .. import handles, job, objects, reduce_ops
from .._library import library
from ..calls import Reduction
from ..process_sets import global_process_set

_LARGEST = Reduction(reduce_ops.Max, 1.0, 1.0, global_process_set)


def is_elastic() -> bool:
    """True if this process is in an elastic job."""
    return bool(library().runjob_elastic() == 1)


def pending() -> tuple[int, bool]:
    """The launcher's request to this process: 0 for none, 1 if hosts were only added, else 2. The second value is true
    if this process is to leave.
    """
    update, leaving = c_int32(), c_int32()
    job.check(library().runjob_elastic_pending(byref(update), byref(leaving)))
    return update.value, bool(leaving.value)


def commits() -> list[int]:
    """The commit number that each rank has reported for this generation."""
    numbers = (c_int64 * job.size())()
    job.check(library().runjob_elastic_commits(numbers))
    return list(numbers)


def largest(value: int, name: str) -> int:
    """The largest `value` of the ranks, each of which is from 0 to 255. All ranks call it, with the same name."""
    answer: bytearray = handles.run(objects.calls.allreduce(bytearray((value,)), name, _LARGEST, in_place=True))
    return answer[0]


def transfer(blocks: Sequence[memoryview], sizes: Sequence[int], lacks: bool) -> None:
    """Sends the blocks of rank 0 to the ranks that lack them. All ranks call it with the same sizes. On a rank that has
    the blocks, which only waits, `blocks` may be empty.

    Errors  HorovodInternalError and its kinds. After an error a rank that lacks the blocks may have some of
            their bytes.
    """
    addresses = (c_void_p * len(sizes))(*(addressof(c_char.from_buffer(block)) if block else None for block in blocks))
    lengths = (c_int64 * len(sizes))(*sizes)
    job.call_interruptibly(lambda: library().runjob_elastic_transfer(addresses, lengths, len(sizes), lacks))
