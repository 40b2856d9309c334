"""The collectives on lists of tensors. The i-th output is the result that the operation on single tensors has for the
i-th tensor.

A list is one operation of the library, submitted in one call, with one name and one handle: it runs when all ranks have submitted
it, and fails as a whole. synchronize() returns the list of outputs.

Names    `grouped_<operation>.<name>`. The name may be missing, as it may for a single operation. All ranks have the
         same number of tensors in the same order. Messages name the i-th of n tensors `<name>_<i>of<n>`, with i from 1.
Shape, dtype, Threads  as in operations.py for each tensor. dtypes may differ among the tensors of a list.
Errors   ValueError for an empty list and for arguments that can never work, before anything is submitted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from ctypes import POINTER, addressof, byref, c_int32, c_int64, c_void_p, sizeof
from typing import Any, Generic, cast

from . import compression, handles, job, process_sets, reduce_ops
from ._library import Tensor, library, set_tensor
from .arrays import Array, Given
from .calls import Calls, Reduction
from .compression import Compressor, NoneCompressor
from .dtypes import NAMES, NUMBERS
from .exceptions import InvalidArgumentError
from .handles import Call, Collective
from .process_sets import ProcessSet, global_process_set
from .reduce_ops import Adasum, Average, Sum

ALLREDUCE = Collective("grouped_allreduce")
ALLGATHER = Collective("grouped_allgather")
REDUCESCATTER = Collective("grouped_reducescatter")

_BOOL = NUMBERS["bool"]
_NO_REDUCTION = Reduction(Sum, 1.0, 1.0, global_process_set)


class GroupedCalls(Generic[Array]):
    """The groups of one framework, described. Invalid arguments that can be recognized without the library are refused
    here.
    """

    def __init__(self, calls: Calls[Array]) -> None:
        self._calls = calls
        self._arrays = calls.arrays

    def allreduce(self, tensors: Iterable[Any], name: str | None, reduction: Reduction, in_place: bool = False) -> Call:
        operation = "grouped_allreduce_" if in_place else "grouped_allreduce"
        given = self.listed(tensors, operation)
        if in_place:
            self.check_distinct(given)
            outputs = dense = [self._arrays.in_place(tensor, "allreduce_") for tensor in given]
        else:
            dense = [self._arrays.dense(tensor, "allreduce") for tensor in given]
            outputs = [self._arrays.empty_like(tensor) for tensor in dense]
        set_id = process_sets.identifier(reduction.process_set)
        if reduction.op == Adasum:
            for tensor in dense:
                reduce_ops.check_adasum("grouped_allreduce", NAMES[self._arrays.form(tensor)[2]])
        self._check_reduction(dense, "grouped_allreduce", reduction)
        return self._group(ALLREDUCE, name, dense, outputs, lambda core: outputs, set_id, reduction)

    def allgather(self, tensors: Iterable[Any], name: str | None, process_set: ProcessSet) -> Call:
        dense = [self._arrays.dense(tensor, "allgather") for tensor in self.listed(tensors, "grouped_allgather")]
        set_id = process_sets.identifier(process_set)
        self._check_rows(dense, "grouped_allgather")
        rooms = [self._calls.gathered_room(tensor, process_set) for tensor in dense]
        return self._group(ALLGATHER, name, dense, rooms, self._outputs(dense, rooms), set_id)

    def reducescatter(self, tensors: Iterable[Any], name: str | None, reduction: Reduction) -> Call:
        dense = [self._arrays.dense(tensor, "reducescatter") for tensor in self.listed(tensors, "grouped_reducescatter")]
        set_id = process_sets.identifier(reduction.process_set)
        reduce_ops.check_scattered(reduction.op)
        self._check_rows(dense, "grouped_reducescatter")
        self._check_reduction(dense, "grouped_reducescatter", reduction)
        rooms = [self._calls.scattered_room(tensor, reduction.process_set) for tensor in dense]
        return self._group(REDUCESCATTER, name, dense, rooms, self._outputs(dense, rooms), set_id, reduction)

    def listed(self, tensors: Iterable[Any], operation: str) -> list[Any]:
        """`tensors` as a list. Errors  ValueError for a single tensor, and for an empty list."""
        if self._arrays.is_array(tensors):
            raise ValueError(f"{operation} takes a list of tensors, not one tensor")
        listed = list(tensors)
        if not listed:
            raise ValueError(f"{operation} takes at least one tensor; the list is empty")
        return listed

    def check_distinct(self, tensors: list[Any]) -> None:
        """Checks tensors that are worked on in place. Errors  ValueError for one that is in the list twice."""
        if len(set(map(id, tensors))) != len(tensors):
            raise ValueError("grouped_allreduce_ works in place, and the list has one tensor twice")

    def _group(
        self, kind: Collective, name: str | None, tensors: list[Array], rooms: Sequence[Array | None],
        result: Callable[[int], list[Array]], set_id: int, reduction: Reduction = _NO_REDUCTION,
    ) -> Call:  # fmt: skip
        """`rooms`: the memory for the outputs, which is used if they fit."""
        described = (Tensor * len(tensors))()
        shapes = []
        for index, (tensor, room) in enumerate(zip(tensors, rooms)):
            shape, ndim, dtype = self._arrays.form(tensor)
            place = (self._arrays.address(tensor), *self._calls.place(room))
            set_tensor(described, index * sizeof(Tensor), *place, addressof(shape), ndim, dtype)
            shapes.append(shape)
        op, prescale, postscale, _, native = reduction
        return Call(kind, name, described, (*tensors, *rooms, *shapes), result, set_id, op, prescale, postscale, native)

    def _outputs(self, tensors: list[Array], rooms: list[Array | None]) -> Callable[[int], list[Array]]:
        def take(core: int) -> list[Array]:
            return [self._take(core, index, *pair) for index, pair in enumerate(zip(tensors, rooms))]

        return take

    def _take(self, core_handle: int, index: int, like: Array, room: Array | None) -> Array:
        data, shape, ndim = c_void_p(), POINTER(c_int64)(), c_int32()
        job.check(library().runjob_grouped_output(core_handle, index, byref(data), byref(shape), byref(ndim)))
        return self._calls.own(data, shape, ndim, like, room)

    # The library refuses these faults too. Here the messages fit a list.

    def _check_rows(self, tensors: list[Array], operation: str) -> None:
        for index, tensor in enumerate(tensors):
            if not self._arrays.shape(tensor):
                raise InvalidArgumentError(f"{operation}: tensor {index} of the list is a scalar, without a first dimension")

    def _check_reduction(self, tensors: list[Array], operation: str, reduction: Reduction) -> None:
        if reduction.op != Average and reduction.prescale_factor == 1 and reduction.postscale_factor == 1:
            return
        for index, tensor in enumerate(tensors):
            if self._arrays.form(tensor)[2] == _BOOL:
                raise InvalidArgumentError(f"{operation}: tensor {index} of the list is bool, which cannot be averaged or scaled")


class GroupedOperations(Generic[Given, Array]):
    """`native` is as for Operations."""

    def __init__(self, calls: GroupedCalls[Array], native: Mapping[type[Compressor], int]) -> None:
        self._calls = calls
        self._native = native

    def grouped_allreduce(
        self, tensors: Sequence[Given], average: bool | None = None, name: str | None = None,
        compression: type[Compressor] = NoneCompressor, op: int | None = None,
        prescale_factor: float = 1.0, postscale_factor: float = 1.0, process_set: ProcessSet = global_process_set,
    ) -> list[Array]:  # fmt: skip
        """Reduces each tensor as allreduce(), all as one operation. Returns a list of new tensors.

        Shape, dtype  any; they may differ among the tensors of the list, not among ranks.
        Errors        as allreduce(), and ValueError for an empty list.
        """
        op = reduce_ops.resolve(op, average)
        compression, native = _split(compression, self._native)
        compressed, contexts = self._compress(compression, tensors, "grouped_allreduce")
        reduction = Reduction(op, prescale_factor, postscale_factor, process_set, native)
        reduced = handles.run(self._calls.allreduce(compressed, name, reduction))
        return list(map(compression.decompress, reduced, contexts))

    def grouped_allreduce_async(
        self, tensors: Sequence[Given], average: bool | None = None, name: str | None = None, op: int | None = None,
        prescale_factor: float = 1.0, postscale_factor: float = 1.0, process_set: ProcessSet = global_process_set,
    ) -> int:  # fmt: skip
        """Starts allreduce_async() of each tensor, into new tensors. Returns one handle for all.

        Errors  as allreduce_async(), and ValueError for an empty list.
        """
        reduction = Reduction(reduce_ops.resolve(op, average), prescale_factor, postscale_factor, process_set)
        return handles.start(self._calls.allreduce(tensors, name, reduction))

    def grouped_allreduce_async_(
        self, tensors: Sequence[Array], average: bool | None = None, name: str | None = None, op: int | None = None,
        prescale_factor: float = 1.0, postscale_factor: float = 1.0, process_set: ProcessSet = global_process_set,
    ) -> int:  # fmt: skip
        """grouped_allreduce_async() in place: `tensors` must not be touched until synchronize(handle) returns them.

        Errors  as allreduce_async_(), and ValueError for an empty list or one that has a tensor twice.
        """
        reduction = Reduction(reduce_ops.resolve(op, average), prescale_factor, postscale_factor, process_set)
        return handles.start(self._calls.allreduce(tensors, name, reduction, in_place=True))

    def grouped_allreduce_(
        self, tensors: Sequence[Array], average: bool | None = None, name: str | None = None, op: int | None = None,
        prescale_factor: float = 1.0, postscale_factor: float = 1.0, process_set: ProcessSet = global_process_set,
    ) -> list[Array]:  # fmt: skip
        """grouped_allreduce() in place. Returns `tensors`, as a list.

        Errors  as allreduce_(), and ValueError for an empty list or one that has a tensor twice.
        """
        reduction = Reduction(reduce_ops.resolve(op, average), prescale_factor, postscale_factor, process_set)
        return cast("list[Array]", handles.run(self._calls.allreduce(tensors, name, reduction, in_place=True)))

    def grouped_allgather(
        self, tensors: Sequence[Given], name: str | None = None, process_set: ProcessSet = global_process_set
    ) -> list[Array]:
        """Gathers each tensor as allgather(), all as one operation. Returns a list of new tensors.

        Errors  as allgather(), and ValueError for an empty list.
        """
        return cast("list[Array]", handles.run(self._calls.allgather(tensors, name, process_set)))

    def grouped_allgather_async(
        self, tensors: Sequence[Given], name: str | None = None, process_set: ProcessSet = global_process_set
    ) -> int:
        """Starts allgather_async() of each tensor. Returns one handle for all.

        Errors  as allgather_async(), and ValueError for an empty list.
        """
        return handles.start(self._calls.allgather(tensors, name, process_set))

    def grouped_reducescatter(
        self, tensors: Sequence[Given], name: str | None = None, compression: type[Compressor] = NoneCompressor,
        op: int = Average, process_set: ProcessSet = global_process_set,
        prescale_factor: float = 1.0, postscale_factor: float = 1.0,
    ) -> list[Array]:  # fmt: skip
        """Reduces and scatters each tensor as reducescatter(), all as one operation. Returns a list of new tensors.

        Errors  as reducescatter(), and ValueError for an empty list.
        """
        compressed, contexts = self._compress(compression, tensors, "grouped_reducescatter")
        reduction = Reduction(reduce_ops.resolve(op, None), prescale_factor, postscale_factor, process_set)
        reduced = handles.run(self._calls.reducescatter(compressed, name, reduction))
        return list(map(compression.decompress, reduced, contexts))

    def grouped_reducescatter_async(
        self, tensors: Sequence[Given], name: str | None = None, op: int = Average,
        process_set: ProcessSet = global_process_set, prescale_factor: float = 1.0, postscale_factor: float = 1.0,
    ) -> int:  # fmt: skip
        """Starts reducescatter_async() of each tensor. Returns one handle for all.

        Errors  as reducescatter_async(), and ValueError for an empty list.
        """
        reduction = Reduction(reduce_ops.resolve(op, None), prescale_factor, postscale_factor, process_set)
        return handles.start(self._calls.reducescatter(tensors, name, reduction))

    def _compress(self, compression: type[Compressor], tensors: Sequence[Given], operation: str) -> tuple[list[Any], list[Any]]:
        """The tensors to send, and the contexts for decompress()."""
        pairs = [compression.compress(tensor) for tensor in self._calls.listed(tensors, operation)]
        return [compressed for compressed, _ in pairs], [context for _, context in pairs]


_split = compression.split  # used in functions that have an argument `compression`
