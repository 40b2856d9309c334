"""The collectives on TensorFlow's tensors, eagerly and in functions. GradientTape can differentiate all of them.

dtype    uint8, int8, uint16, int16, int32, int64, float16, bfloat16, float32, float64 and bool, the same on all ranks.
Results  new tensors of the same dtype, on the CPU; TensorFlow copies to and from other devices.
Names    of unnamed operations: see nodes.py. `ignore_name_scope` leaves out the scopes of the surrounding graph.
Devices  `device_dense` and `device_sparse` are tf.device() names for the operation.
Errors   ValueError for arguments that can never work, if that is known at once. Otherwise a tf.errors.OpError when the
         operation runs: see nodes.py.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from .. import job, process_sets, reduce_ops
from .. import operations as eager_operations
from ..compression import Compressor, split
from ..process_sets import ProcessSet, global_process_set
from ..reduce_ops import Adasum, Average, Sum
from . import nodes
from .compression import NATIVE, Compression
from .kernels import operations
from .nodes import Naming


def allreduce(
    tensor: Any, average: bool | None = None, device_dense: str = "", device_sparse: str = "",
    compression: type[Compressor] = Compression.none, op: int | None = None, prescale_factor: float = 1.0,
    postscale_factor: float = 1.0, name: str | None = None, process_set: ProcessSet = global_process_set,
    ignore_name_scope: bool = False,
) -> Any:  # fmt: skip
    """Combines the ranks' tensors, element by element. The result is their average unless `op` specifies another
    reduction.

    tensor   any value that tf.convert_to_tensor() takes. Or tf.IndexedSlices, whose values and indices are gathered:
             the result is a tf.IndexedSlices that represents the sum or the average.
    average  deprecated: use op.
    Scaling  result = postscale_factor * reduce(prescale_factor * tensor); integers truncate toward zero.
    Errors   NotImplementedError for other reductions, and for factors, of IndexedSlices.
    """
    op = reduce_ops.resolve(op, average)
    set_id = process_sets.identifier(process_set)
    if isinstance(tensor, tf.IndexedSlices):
        if op not in (Average, Sum) or (prescale_factor, postscale_factor) != (1.0, 1.0):
            raise NotImplementedError("allreduce of tf.IndexedSlices takes op=Average and op=Sum, and no factors")
        with _placed(device_sparse):
            return _allreduce_slices(tensor, op, compression, name, set_id)
    compression, native = split(compression, NATIVE)
    with _placed(device_dense):
        compressed, context = compression.compress(tf.convert_to_tensor(tensor))
        _check_adasum(op, "allreduce", compressed)
        reduced = nodes.run(
            nodes.ALLREDUCE, (compressed,), Naming(name, ignore_name_scope), set_id, reduce_op=op,
            prescale_factor=prescale_factor, postscale_factor=postscale_factor, compression=native,
        )  # fmt: skip
        return compression.decompress(reduced, context)


def _allreduce_slices(slices: Any, op: int, compression: type[Compressor], name: str | None, set_id: int) -> Any:
    compressed, context = compression.compress(slices.values)
    given = [compressed, tf.convert_to_tensor(slices.indices)]
    gathered, indices = nodes.run(nodes.GROUPED_ALLGATHER, (given,), Naming(name), set_id)
    values = compression.decompress(gathered, context)
    if op == Average:
        values /= tf.cast(size_op(set_id), values.dtype)
    return tf.IndexedSlices(values, indices, dense_shape=slices.dense_shape)


def grouped_allreduce(
    tensors: Sequence[Any], average: bool | None = None, device_dense: str = "", device_sparse: str = "",
    compression: type[Compressor] = Compression.none, op: int | None = None, prescale_factor: float = 1.0,
    postscale_factor: float = 1.0, process_set: ProcessSet = global_process_set, ignore_name_scope: bool = False,
    name: str | None = None,
) -> list[Any]:  # fmt: skip
    """Reduces each tensor as allreduce() does, all as one operation. It runs when all ranks have started it, and fails
    as a whole.

    tensors  at least one; the same number in the same order on all ranks. dtypes may differ among them. Those that are
             tf.IndexedSlices are operations of their own.
    """
    op = reduce_ops.resolve(op, average)
    set_id = process_sets.identifier(process_set)
    given = _listed(tensors, "grouped_allreduce")
    places = [index for index, tensor in enumerate(given) if not isinstance(tensor, tf.IndexedSlices)]
    results = [
        allreduce(tensor, None, device_dense, device_sparse, compression, op, process_set=process_set)
        if isinstance(tensor, tf.IndexedSlices)
        else tensor
        for tensor in given
    ]
    if not places:
        return results
    compression, native = split(compression, NATIVE)
    with _placed(device_dense):
        pairs = [compression.compress(tf.convert_to_tensor(given[index])) for index in places]
        _check_adasum(op, "grouped_allreduce", *(compressed for compressed, _ in pairs))
        reduced = nodes.run(
            nodes.GROUPED_ALLREDUCE, ([compressed for compressed, _ in pairs],), Naming(name, ignore_name_scope), set_id,
            reduce_op=op, prescale_factor=prescale_factor, postscale_factor=postscale_factor, compression=native,
        )  # fmt: skip
        for index, tensor, (_, context) in zip(places, reduced, pairs):
            results[index] = compression.decompress(tensor, context)
    return results


def allgather(
    tensor: Any, name: str | None = None, ignore_name_scope: bool = False, process_set: ProcessSet = global_process_set
) -> Any:
    """Concatenates the ranks' tensors along dimension 0, in rank order.

    Shape  at least one dimension; first extents may differ among ranks, the others not.
    """
    given = tf.convert_to_tensor(tensor)
    return nodes.run(nodes.ALLGATHER, (given,), Naming(name, ignore_name_scope), process_sets.identifier(process_set))


def grouped_allgather(
    tensors: Sequence[Any], name: str | None = None, ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
) -> list[Any]:  # fmt: skip
    """Gathers each tensor as allgather() does, all as one operation."""
    given = [tf.convert_to_tensor(tensor) for tensor in _listed(tensors, "grouped_allgather")]
    set_id = process_sets.identifier(process_set)
    return list(nodes.run(nodes.GROUPED_ALLGATHER, (given,), Naming(name, ignore_name_scope), set_id))


def broadcast(
    tensor: Any, root_rank: int, name: str | None = None, ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
) -> Any:  # fmt: skip
    """Sends root_rank's tensor to every rank. The tensors of the other ranks give shape and dtype.

    root_rank  a rank of the job, also with a process set, which has to include it.
    """
    given = tf.convert_to_tensor(tensor)
    set_id = process_sets.identifier(process_set)
    return nodes.run(nodes.BROADCAST, (given,), Naming(name, ignore_name_scope), set_id, root_rank=root_rank)


def alltoall(
    tensor: Any, splits: Any = None, name: str | None = None, ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
) -> Any:  # fmt: skip
    """Sends rows of `tensor` to each rank, the first ones to rank 0, and returns the received rows, in rank order.

    splits   the number of rows for each rank. None: each rank gets the same number. With it, returns (the received
             rows, the number of rows from each rank).
    """
    given = tf.convert_to_tensor(tensor)
    rows = tf.constant([], tf.int32) if splits is None else tf.cast(tf.convert_to_tensor(splits), tf.int32)
    set_id = process_sets.identifier(process_set)
    output, received_splits = nodes.run(nodes.ALLTOALL, (given, rows), Naming(name, ignore_name_scope), set_id)
    return output if splits is None else (output, received_splits)


def reducescatter(
    tensor: Any, device_dense: str = "", compression: type[Compressor] = Compression.none, op: int = Average,
    name: str | None = None, process_set: ProcessSet = global_process_set, ignore_name_scope: bool = False,
    prescale_factor: float = 1.0, postscale_factor: float = 1.0,
) -> Any:  # fmt: skip
    """Reduces as allreduce() does, and leaves each rank a part of the rows, rank 0 the first. If they cannot be divided
    evenly, the first ranks get one more.
    """
    op = reduce_ops.resolve(op, None)
    reduce_ops.check_scattered(op)
    set_id = process_sets.identifier(process_set)
    with _placed(device_dense):
        compressed, context = compression.compress(tf.convert_to_tensor(tensor))
        reduced = nodes.run(
            nodes.REDUCESCATTER, (compressed,), Naming(name, ignore_name_scope), set_id, reduce_op=op,
            prescale_factor=prescale_factor, postscale_factor=postscale_factor,
        )  # fmt: skip
        return compression.decompress(reduced, context)


def grouped_reducescatter(
    tensors: Sequence[Any], device_dense: str = "", compression: type[Compressor] = Compression.none, op: int = Average,
    process_set: ProcessSet = global_process_set, prescale_factor: float = 1.0, postscale_factor: float = 1.0,
    name: str | None = None,
) -> list[Any]:  # fmt: skip
    """Reduces and scatters each tensor as reducescatter() does, all as one operation."""
    op = reduce_ops.resolve(op, None)
    reduce_ops.check_scattered(op)
    set_id = process_sets.identifier(process_set)
    with _placed(device_dense):
        given = _listed(tensors, "grouped_reducescatter")
        pairs = [compression.compress(tf.convert_to_tensor(tensor)) for tensor in given]
        reduced = nodes.run(
            nodes.GROUPED_REDUCESCATTER, ([compressed for compressed, _ in pairs],), Naming(name), set_id, reduce_op=op,
            prescale_factor=prescale_factor, postscale_factor=postscale_factor,
        )  # fmt: skip
        return [compression.decompress(tensor, context) for tensor, (_, context) in zip(reduced, pairs)]


def join(device: int = -1) -> Any:
    """Announces that this rank has no more data, and waits until all ranks have announced it. Returns the rank that
    joined last, an int32 scalar.

    Until then, zeros of this rank take part in the others' allreduces, whose averages still divide by the size. All
    other operations except barriers fail on the other ranks. Outside of functions, operations without a name are
    counted from the beginning afterwards. `device` has no effect.
    """
    last = operations().horovod_join()
    if tf.executing_eagerly():
        job.note_join()
    return last


def barrier(process_set: ProcessSet = global_process_set) -> Any:
    """Ends when all ranks of the set have called it. In a function it is an operation, which must run in the order of
    the program.
    """
    if tf.executing_eagerly():
        return eager_operations.barrier(process_set)
    return nodes.run(nodes.BARRIER, (), Naming(), process_sets.identifier(process_set))


def size_op(process_set_id: int = 0, name: str | None = None) -> Any:
    """The number of ranks of the job, or of a process set, when the operation runs: an int32 scalar.

    Errors  ValueError for a number that no set has; in a function tf.errors.InvalidArgumentError when the operation
            runs.
    """
    _check_set(process_set_id)
    return operations().horovod_size(process_set_id=process_set_id, name=name)


def process_set_included_op(process_set_id: int = 0, name: str | None = None) -> Any:
    """1 if this rank is in the set, else 0. Errors  as size_op()."""
    _check_set(process_set_id)
    return operations().horovod_process_set_included(process_set_id=process_set_id, name=name)


def local_size_op(name: str | None = None) -> Any:
    """The number of ranks on this host, when the operation runs."""
    return operations().horovod_local_size(name=name)


def rank_op(name: str | None = None) -> Any:
    """The number of this rank, when the operation runs."""
    return operations().horovod_rank(name=name)


def local_rank_op(name: str | None = None) -> Any:
    """The index of this rank among the ranks on its host, when the operation runs."""
    return operations().horovod_local_rank(name=name)


def _check_set(number: int) -> None:
    if tf.executing_eagerly():
        process_sets.check_number(number)


def _check_adasum(op: int, operation: str, *tensors: Any) -> None:
    if op == Adasum:
        for tensor in tensors:
            reduce_ops.check_adasum(operation, tensor.dtype.base_dtype.name)


def _listed(tensors: Any, operation: str) -> list[Any]:
    """The tensors as a list. Errors  ValueError for a single tensor, and for an empty list."""
    if isinstance(tensors, (tf.Tensor, tf.Variable, tf.IndexedSlices)):
        raise ValueError(f"{operation} takes a list of tensors, not one tensor")
    listed = list(tensors)
    if not listed:
        raise ValueError(f"{operation} takes at least one tensor; the list is empty")
    return listed


def _placed(device: str) -> Any:
    return tf.device(device) if device else contextlib.nullcontext()
