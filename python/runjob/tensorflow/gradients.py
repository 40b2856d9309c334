"""How lists of gradients are reduced over the ranks: what DistributedOptimizer and DistributedGradientTape do alike."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import tensorflow as tf

from ..compression import Compressor
from ..process_sets import ProcessSet
from ..reduce_ops import Average, resolve
from . import operations

#: Of one operation, when nobody says which gradients go together: enough for the network, and few enough to begin before all are there.
_BUCKET_BYTES = 16 << 20


class GradientReduction:
    """What the users of both give, checked.

    groups                 how many groups the gradients form, or lists of variables; each is one operation. Others: by size.
    scale_local_gradients  divide the gradients of local variables, which are not reduced, by the number of ranks, as averages are.
    Errors                 ValueError, NotImplementedError for Adasum.
    """

    def __init__(
        self, compression: type[Compressor], sparse_as_dense: bool, op: int, gradient_predivide_factor: float, num_groups: int,
        groups: Any, process_set: ProcessSet, scale_local_gradients: bool, device_dense: str = "", device_sparse: str = "",
    ) -> None:  # fmt: skip
        self.op = resolve(op, None)
        if gradient_predivide_factor != 1.0 and self.op != Average:
            raise ValueError("gradient_predivide_factor needs op=Average")
        if num_groups != 0:
            warnings.warn("num_groups= is deprecated: use groups=", DeprecationWarning, stacklevel=4)
            groups = num_groups if groups is None else groups
        if groups is not None and not isinstance(groups, (list, tuple)) and (not isinstance(groups, int) or groups < 0):
            raise ValueError(f"groups={groups!r}: give a number of groups, or a list of lists of variables")
        self.groups = groups or None
        self.compression = compression
        self.sparse_as_dense = sparse_as_dense
        self.process_set = process_set
        self._predivide = float(gradient_predivide_factor)
        self._scale_local_gradients = scale_local_gradients
        self._devices = {"device_dense": device_dense, "device_sparse": device_sparse}
        self._local: set[Any] = set()

    def register_local(self, variable: Any) -> None:
        """Leaves its gradients to each rank."""
        self._local.add(_identity(variable))

    def is_local(self, variable: Any) -> bool:
        """Whether register_local() was called with it."""
        return _identity(variable) in self._local

    def reduced(self, gradients: Sequence[Any], variables: Sequence[Any]) -> list[Any]:
        """The gradients of `variables`, in their order; None stays None, on all ranks or on none."""
        results = list(gradients)
        places = []
        for index, (gradient, variable) in enumerate(zip(results, variables)):
            if gradient is None:
                continue
            if self.is_local(variable):
                results[index] = self._scaled(gradient)
                continue
            if self.sparse_as_dense and isinstance(gradient, tf.IndexedSlices):
                results[index] = tf.convert_to_tensor(gradient)
            places.append(index)
        with tf.name_scope("DistributedGradients"):
            for group in self._grouped(places, results, variables):
                for index, gradient in zip(group, self._reduced_together([results[index] for index in group])):
                    results[index] = gradient
        return results

    def _scaled(self, gradient: Any) -> Any:
        """So that a step moves a local variable as far as the average of its gradients would, were the others zero."""
        if not self._scale_local_gradients:
            return gradient
        set_id = self.process_set.process_set_id or 0
        if isinstance(gradient, tf.IndexedSlices):
            size = tf.cast(operations.size_op(set_id), gradient.values.dtype)
            return tf.IndexedSlices(gradient.values / size, gradient.indices, gradient.dense_shape)
        return gradient / tf.cast(operations.size_op(set_id), gradient.dtype)

    def _reduced_together(self, gradients: list[Any]) -> list[Any]:
        scaled: dict[str, Any] = {}
        if self._predivide != 1.0:
            scaled = {"prescale_factor": 1.0 / self._predivide, "postscale_factor": self._predivide}
        options: dict[str, Any] = {"compression": self.compression, "op": self.op, "process_set": self.process_set, **self._devices}
        if len(gradients) == 1 or any(isinstance(gradient, tf.IndexedSlices) for gradient in gradients):
            return [
                operations.allreduce(each, **options, **({} if isinstance(each, tf.IndexedSlices) else scaled))
                for each in gradients
            ]
        return operations.grouped_allreduce(gradients, **options, **scaled)

    def _grouped(self, places: list[int], gradients: Sequence[Any], variables: Sequence[Any]) -> Iterable[list[int]]:
        """The indices of gradients that are one operation; those of IndexedSlices are by themselves."""
        sparse = [index for index in places if isinstance(gradients[index], tf.IndexedSlices)]
        yield from ([index] for index in sparse)
        dense = [index for index in places if index not in sparse]
        if isinstance(self.groups, int):
            yield from _split(dense, self.groups)
        elif self.groups:
            group_of = {_identity(each): number for number, group in enumerate(self.groups) for each in group}
            numbers = {index: group_of.get(_identity(variables[index])) for index in dense}
            for number in range(len(self.groups)):
                group = [index for index in dense if numbers[index] == number]
                if group:
                    yield group
            yield from _by_size([index for index in dense if numbers[index] is None], gradients)
        else:
            yield from _by_size(dense, gradients)


def _by_size(places: list[int], gradients: Sequence[Any]) -> Iterable[list[int]]:
    """From the last one on, which is there first."""
    group: list[int] = []
    filled = 0
    for index in reversed(places):
        shape = gradients[index].shape
        count = shape.num_elements() if shape.is_fully_defined() else 0
        group.append(index)
        filled += count * gradients[index].dtype.size
        if filled >= _BUCKET_BYTES:
            yield group
            group, filled = [], 0
    if group:
        yield group


def _split(places: list[int], count: int) -> Iterable[list[int]]:
    """At most `count` lists of about the same length."""
    size, more = divmod(len(places), count)
    first = 0
    for number in range(min(count, len(places))):
        last = first + size + (number < more)
        yield places[first:last]
        first = last


def _identity(variable: Any) -> Any:
    """Alike for a variable of Keras and the TensorFlow one in it."""
    inner = getattr(variable, "value", None)
    return id(inner) if isinstance(inner, tf.Variable) else id(variable)
