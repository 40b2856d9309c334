"""The collectives for the arrays of any framework. The framework's module calls them tensors or arrays and exports the
operations as functions.

Names    identify an operation among the ranks. Unnamed ones are identified by their order, which must be the same on
         all ranks. Handles are counted separately from synchronous calls, and these for each operation, so an unnamed
         operation must be synchronous on all ranks or on none.

process_set  the ranks that take part. "All ranks" means these, and sizes and rank order are theirs. `root_rank` is a
             rank of the job.
Shape    a tensor's shape is the same on all ranks, except for allgather's and alltoall's first extent.
dtype    uint8, int8, uint16, int16, int32, int64, float16, bfloat16, float32, float64, bool; the same on all ranks.
         Reductions of bool: Sum and Max are or, Product and Min are and; Average and scaling are refused.
Threads  any, concurrently. Functions that wait release the GIL.
Errors   ValueError for arguments that can never work (dtype, a non-contiguous tensor in place, a name in flight,
         root_rank); HorovodInternalError and its kinds from synchronize(), on every rank: MismatchError when the ranks
         disagree.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from ctypes import POINTER, byref, c_int32, c_int64, c_void_p
from typing import Generic, cast

from . import compression, handles, job, process_sets, reduce_ops
from ._library import library
from .arrays import Array, Given
from .calls import BARRIER, JOIN, Calls, Reduction
from .compression import Compressor, NoneCompressor
from .handles import Call
from .process_sets import ProcessSet, global_process_set
from .reduce_ops import Average


class Operations(Generic[Given, Array]):
    """`native` has the compressors that the library knows, for synchronous calls: see compression.split()."""

    def __init__(self, calls: Calls[Array], native: Mapping[type[Compressor], int]) -> None:
        self._calls = calls
        self._native = native

    def allreduce(
        self, tensor: Given, average: bool | None = None, name: str | None = None,
        compression: type[Compressor] = NoneCompressor, op: int | None = None,
        prescale_factor: float = 1.0, postscale_factor: float = 1.0, process_set: ProcessSet = global_process_set,
    ) -> Array:  # fmt: skip
        """Reduces `tensor` over the ranks: postscale_factor * reduction of (prescale_factor * tensor).

        op       Average (the default), Sum, Adasum, Min, Max, Product. `average=` is deprecated. Averages of integers truncate
                 toward zero. Adasum takes floats alone.
        Shape, dtype  any; those of the result, a new tensor on every rank, are the same.
        Errors   ValueError for arguments that can never work; HorovodInternalError and its kinds, MismatchError when
                 the ranks disagree.
        """
        op = reduce_ops.resolve(op, average)
        compression, native = _split(compression, self._native)
        compressed, context = compression.compress(tensor)
        reduction = Reduction(op, prescale_factor, postscale_factor, process_set, native)
        return cast(Array, compression.decompress(handles.run(self._calls.allreduce(compressed, name, reduction)), context))

    def allreduce_async(
        self, tensor: Given, average: bool | None = None, name: str | None = None, op: int | None = None,
        prescale_factor: float = 1.0, postscale_factor: float = 1.0, process_set: ProcessSet = global_process_set,
    ) -> int:  # fmt: skip
        """Starts postscale_factor * reduction over ranks of (prescale_factor * tensor) into a new tensor; returns a handle.

        op      Average (the default), Sum, Adasum, Min, Max, Product. `average=` is deprecated. Averages of integers truncate
                toward zero. Adasum takes floats alone.
        Owner   `tensor` must not be changed until synchronize(handle), which returns the new one.
        Errors  ValueError for arguments that can never work; other errors come from synchronize().
        """
        reduction = Reduction(reduce_ops.resolve(op, average), prescale_factor, postscale_factor, process_set)
        return handles.start(self._calls.allreduce(tensor, name, reduction))

    def allreduce_async_(
        self, tensor: Array, average: bool | None = None, name: str | None = None, op: int | None = None,
        prescale_factor: float = 1.0, postscale_factor: float = 1.0, process_set: ProcessSet = global_process_set,
    ) -> int:  # fmt: skip
        """allreduce_async() in place: `tensor` must not be touched until synchronize(handle) returns it.

        Errors  as allreduce_async(), and ValueError for memory that the library cannot use without a copy: not
                contiguous, not writable.
        """
        reduction = Reduction(reduce_ops.resolve(op, average), prescale_factor, postscale_factor, process_set)
        return handles.start(self._calls.allreduce(tensor, name, reduction, in_place=True))

    def allreduce_(
        self, tensor: Array, average: bool | None = None, name: str | None = None, op: int | None = None,
        prescale_factor: float = 1.0, postscale_factor: float = 1.0, process_set: ProcessSet = global_process_set,
    ) -> Array:  # fmt: skip
        """allreduce() in place. Returns `tensor`.

        Errors  as allreduce(), and ValueError for memory that the library cannot use without a copy: not contiguous,
                not writable.
        """
        reduction = Reduction(reduce_ops.resolve(op, average), prescale_factor, postscale_factor, process_set)
        output: Array = handles.run(self._calls.allreduce(tensor, name, reduction, in_place=True))
        return output

    def allgather(
        self, tensor: Given, name: str | None = None, process_set: ProcessSet = global_process_set
    ) -> Array:
        """The ranks' tensors one after the other along dimension 0, in rank order, as a new tensor.

        Shape   at least one dimension; first extents may differ among ranks, the others not.
        dtype   any, the same on all ranks.
        Errors  as allreduce().
        """
        output: Array = handles.run(self._calls.allgather(tensor, name, process_set))
        return output

    def allgather_async(
        self, tensor: Given, name: str | None = None, process_set: ProcessSet = global_process_set
    ) -> int:
        """Starts the concatenation of the ranks' tensors along dimension 0, in rank order; returns a handle.

        Shape   at least one dimension; the first extent may differ among ranks.
        Errors  as allreduce_async().
        """
        return handles.start(self._calls.allgather(tensor, name, process_set))

    def broadcast(
        self, tensor: Given, root_rank: int, name: str | None = None, process_set: ProcessSet = global_process_set
    ) -> Array:
        """Sends root_rank's tensor to every rank, as a new tensor. The tensors of the other ranks give shape and dtype.

        root_rank  a rank of the job, also with a process set, which has to include it.
        Errors     as allreduce().
        """
        output: Array = handles.run(self._calls.broadcast(tensor, root_rank, name, process_set))
        return output

    def broadcast_async(
        self, tensor: Given, root_rank: int, name: str | None = None, process_set: ProcessSet = global_process_set
    ) -> int:
        """Starts a broadcast of root_rank's tensor into a new tensor on every rank; returns a handle.

        Errors  as allreduce_async().
        """
        return handles.start(self._calls.broadcast(tensor, root_rank, name, process_set))

    def broadcast_async_(
        self, tensor: Array, root_rank: int, name: str | None = None, process_set: ProcessSet = global_process_set
    ) -> int:
        """broadcast_async() in place. `tensor` is read on root_rank and overwritten on the other ranks. It must not be
        touched until the operation is done.

        Errors  as allreduce_async_().
        """
        return handles.start(self._calls.broadcast(tensor, root_rank, name, process_set, in_place=True))

    def broadcast_(
        self, tensor: Array, root_rank: int, name: str | None = None, process_set: ProcessSet = global_process_set
    ) -> Array:
        """broadcast() in place: overwrites `tensor` with root_rank's. Returns `tensor`.

        Errors  as allreduce_().
        """
        output: Array = handles.run(self._calls.broadcast(tensor, root_rank, name, process_set, in_place=True))
        return output

    def alltoall(
        self, tensor: Given, splits: Given | Sequence[int] | None = None, name: str | None = None,
        process_set: ProcessSet = global_process_set,
    ) -> Array | tuple[Array, Array]:  # fmt: skip
        """Sends splits[r] rows of `tensor` (its first dimension) to rank r, the first ones to rank 0, and returns the
        received rows.

        splits   as many integers as ranks, whose sum is the number of rows. Without them each rank gets the same number
                 of rows. With them, returns (the received rows, in rank order; the number of rows from each rank,
                 int32).
        Errors   as allreduce(); ValueError for splits that do not fit.
        """
        output, received = handles.run(self._calls.alltoall(tensor, splits, name, process_set))
        return cast(Array, output) if splits is None else (output, received)

    def alltoall_async(
        self, tensor: Given, splits: Given | Sequence[int] | None = None, name: str | None = None,
        process_set: ProcessSet = global_process_set,
    ) -> int:  # fmt: skip
        """Starts sending splits[r] rows of `tensor` (its first dimension) to rank r, the first ones to rank 0; returns a handle.

        splits  as many integers as ranks, on the CPU, whose sum is the number of rows. Without them each rank gets the
                same number of rows.
        synchronize() returns two tensors: the received rows, in rank order, and the number of rows from each rank
        (int32).
        Errors  as allreduce_async(); ValueError for splits that do not fit.
        """
        return handles.start(self._calls.alltoall(tensor, splits, name, process_set))

    def reducescatter(
        self, tensor: Given, name: str | None = None, compression: type[Compressor] = NoneCompressor, op: int = Average,
        process_set: ProcessSet = global_process_set, prescale_factor: float = 1.0, postscale_factor: float = 1.0,
    ) -> Array:  # fmt: skip
        """Reduces `tensor` over the ranks, as allreduce(), and gives each rank a part of the rows, rank 0 the first.

        Shape   at least one dimension, the same on all ranks. Where the rows cannot be divided evenly, the first ranks get one more.
        Errors  as allreduce().
        """
        compressed, context = compression.compress(tensor)
        reduction = Reduction(reduce_ops.resolve(op, None), prescale_factor, postscale_factor, process_set)
        return cast(Array, compression.decompress(handles.run(self._calls.reducescatter(compressed, name, reduction)), context))

    def reducescatter_async(
        self, tensor: Given, name: str | None = None, op: int = Average, process_set: ProcessSet = global_process_set,
        prescale_factor: float = 1.0, postscale_factor: float = 1.0,
    ) -> int:  # fmt: skip
        """Starts a reduction, as allreduce_async(), of which each rank gets a part of the rows, rank 0 the first; returns a handle.

        Shape   at least one dimension, the same on all ranks. Where the rows cannot be divided evenly, the first ranks get one more.
        Errors  as allreduce_async().
        """
        reduction = Reduction(reduce_ops.resolve(op, None), prescale_factor, postscale_factor, process_set)
        return handles.start(self._calls.reducescatter(tensor, name, reduction))


_split = compression.split  # used in functions that have an argument `compression`


def barrier(process_set: ProcessSet = global_process_set) -> None:
    """Returns when all ranks of the set have called it. Errors  HorovodInternalError and its kinds if a rank cannot
    call it any more.
    """
    set_id = process_sets.identifier(process_set)
    handles.run(Call(BARRIER, None, None, (), lambda core: None, set_id))


def join(device: int = -1) -> int:
    """Announces that this rank has no more data, and returns when all ranks have announced it. Returns the rank that
    joined last, the same on all ranks.

    Until then, zeros of this rank take part in the others' allreduces, whose averages still divide by the size. All
    other operations except barriers raise a HorovodInternalError on the other ranks. Afterwards operations without a
    name are counted from the beginning on all ranks. `device` has no effect, because nothing is computed on it.
    """
    last: int = Call(JOIN, None, None, (), _last_rank).block(b"")
    return last


def _last_rank(core_handle: int) -> int:
    data, shape, ndim = c_void_p(), POINTER(c_int64)(), c_int32()
    job.check(library().runjob_output(core_handle, byref(data), byref(shape), byref(ndim)))
    job.note_join()
    last: int = ctypes.cast(data, POINTER(c_int32))[0]
    return last
