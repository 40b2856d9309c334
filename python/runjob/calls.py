"""The operations that each collective passes to the library, for the arrays of any framework. Invalid arguments that can
be recognized without the library are refused here.
"""

from __future__ import annotations

import ctypes
import operator
from collections.abc import Callable, Sequence
from ctypes import POINTER, addressof, byref, c_int32, c_int64, c_void_p
from typing import Any, Generic, NamedTuple

from . import job, process_sets, reduce_ops
from ._library import Tensor, library, set_tensor
from .arrays import Array, Arrays
from .dtypes import NAMES
from .handles import Call, Collective
from .process_sets import ProcessSet
from .reduce_ops import Adasum

ALLREDUCE = Collective("allreduce")
BROADCAST = Collective("broadcast")
ALLGATHER = Collective("allgather")
ALLTOALL = Collective("alltoall")
REDUCESCATTER = Collective("reducescatter")
BARRIER = Collective("barrier")
JOIN = Collective("join")


class Reduction(NamedTuple):
    """The way in which a reduction combines the ranks' values.

    op      a reduction that reduce_ops.resolve() has returned.
    native  the part of a compression that the library does, see compression.py.
    """

    op: int
    prescale_factor: float
    postscale_factor: float
    process_set: ProcessSet
    native: int = 0


class Calls(Generic[Array]):
    """The operations of one framework, described for handles.start() or handles.run()."""

    def __init__(self, arrays: Arrays[Array]) -> None:
        self.arrays = arrays

    def allreduce(self, tensor: Any, name: str | None, reduction: Reduction, in_place: bool = False) -> Call:
        arrays = self.arrays
        if in_place:
            output = tensor = arrays.in_place(tensor, "allreduce_")
        else:
            tensor = arrays.dense(tensor, "allreduce")
            output = arrays.empty_like(tensor)
        op, prescale, postscale, process_set, native = reduction
        set_id = process_sets.identifier(process_set)
        described = self._described(tensor, arrays.address(output), 0)
        if op == Adasum:
            reduce_ops.check_adasum("allreduce", NAMES[described.dtype])
        return Call(ALLREDUCE, name, described, (tensor, output), lambda core: output, set_id, op, prescale, postscale, native)

    def allgather(self, tensor: Any, name: str | None, process_set: ProcessSet) -> Call:
        tensor = self.arrays.dense(tensor, "allgather")
        set_id = process_sets.identifier(process_set)
        room = self.gathered_room(tensor, process_set)
        described = self._described(tensor, *self.place(room))
        return Call(ALLGATHER, name, described, (tensor, room), lambda core: self._take(core, tensor, room), set_id)

    def broadcast(self, tensor: Any, root_rank: int, name: str | None, process_set: ProcessSet, in_place: bool = False) -> Call:
        arrays = self.arrays
        tensor = arrays.in_place(tensor, "broadcast_") if in_place else arrays.copy(tensor, "broadcast")
        set_id = process_sets.identifier(process_set)
        described = self._described(tensor, arrays.address(tensor), 0)
        return Call(BROADCAST, name, described, (tensor,), lambda core: tensor, set_id, root=root_rank)

    def alltoall(self, tensor: Any, splits: Any, name: str | None, process_set: ProcessSet) -> Call:
        tensor = self.arrays.dense(tensor, "alltoall")
        set_id = process_sets.identifier(process_set)
        rows = None if splits is None else _splits(splits)
        room = self._room(tensor, lambda rows: rows) if rows is None else None  # a guess: another rank may send more rows
        given = None if rows is None else (c_int64 * len(rows))(*rows)
        described = self._described(tensor, *self.place(room))

        def result(core: int) -> tuple[Array, Array]:
            return self._take(core, tensor, room), self.arrays.splits(_received_splits(core))

        return Call(ALLTOALL, name, described, (tensor, room), result, set_id, splits=given)

    def reducescatter(self, tensor: Any, name: str | None, reduction: Reduction) -> Call:
        tensor = self.arrays.dense(tensor, "reducescatter")
        op, prescale, postscale, process_set, _ = reduction
        reduce_ops.check_scattered(op)
        set_id = process_sets.identifier(process_set)
        room = self.scattered_room(tensor, process_set)
        described = self._described(tensor, *self.place(room))
        tensors = (tensor, room)
        return Call(REDUCESCATTER, name, described, tensors, lambda core: self._take(core, tensor, room), set_id, op, prescale, postscale)

    # The following functions serve groups as well.

    def place(self, room: Array | None) -> tuple[int, int]:
        """Address and bytes of `room`; 0 without one."""
        return (0, 0) if room is None else (self.arrays.address(room), self.arrays.nbytes(room))

    def gathered_room(self, tensor: Array, process_set: ProcessSet) -> Array | None:
        return self._room(tensor, lambda rows: rows * process_sets.size_of(process_set))  # a guess: the ranks' rows may differ

    def scattered_room(self, tensor: Array, process_set: ProcessSet) -> Array | None:
        size, rank = process_sets.size_of(process_set), process_sets.rank_in(process_set)
        return self._room(tensor, lambda rows: rows // size + (rank < rows % size))

    def own(self, data: c_void_p, shape: Any, ndim: c_int32, like: Array, room: Array | None) -> Array:
        """The library's result: `room` if the library has written there, else a copy."""
        extents = tuple(shape[: ndim.value])
        if room is not None and data.value == self.arrays.address(room):
            return self.arrays.cut(room, extents)
        output = self.arrays.empty(extents, like)
        if self.arrays.nbytes(output):
            ctypes.memmove(self.arrays.address(output), data, self.arrays.nbytes(output))
        return output

    def _described(self, tensor: Array, output: int, output_bytes: int) -> Tensor:
        """The tensor in the library's form, with its extents, of which that has the address."""
        described = Tensor()
        described.extents = shape, ndim, dtype = self.arrays.form(tensor)
        set_tensor(described, 0, self.arrays.address(tensor), output, output_bytes, addressof(shape), ndim, dtype)
        return described

    def _take(self, core_handle: int, like: Array, room: Array | None) -> Array:
        data, shape, ndim = c_void_p(), POINTER(c_int64)(), c_int32()
        job.check(library().runjob_output(core_handle, byref(data), byref(shape), byref(ndim)))
        return self.own(data, shape, ndim, like, room)

    def _room(self, tensor: Array, rows: Callable[[int], int]) -> Array | None:
        """Memory into which the library may write a result that has rows(n) rows, where `tensor` has n. None if there
        is no such memory.
        """
        shape = self.arrays.shape(tensor)
        if not shape:
            return None  # the library refuses it, with a better message
        try:
            return self.arrays.empty((rows(shape[0]), *shape[1:]), tensor)
        except self.arrays.no_room:  # the guess may be too large although the result is not
            return None


def _splits(splits: Any) -> list[int]:
    listed: Sequence[Any] = splits.tolist() if hasattr(splits, "tolist") else list(splits)
    try:
        rows = [operator.index(each) for each in listed if not isinstance(each, bool)]
    except TypeError:
        rows = []
    if not rows or len(rows) != len(listed):
        raise ValueError(f"alltoall: splits must be one integer for each rank, not {splits!r}")
    return rows


def _received_splits(core_handle: int) -> list[int]:
    splits, count = POINTER(c_int64)(), c_int32()
    job.check(library().runjob_received_splits(core_handle, byref(splits), byref(count)))
    return splits[: count.value]
