"""Reduces lists of gradients over the ranks, for DistributedOptimizer and DistributedGradientTape."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import tensorflow as tf

from .. import handles, objects, process_sets
from ..calls import Reduction
from ..compression import Compressor
from ..bucket_settings import bucket_settings
from ..gradient_groups import given_groups, grouped
from ..process_sets import ProcessSet
from ..reduce_ops import Average, Max, resolve
from . import operations


class GradientReduction:
    """The checked arguments that users pass to both.

    groups                 the number of groups of gradients, or lists of variables. Each group is one operation. Other
                           gradients are grouped by size.
    scale_local_gradients  divides the gradients of local variables, which are not reduced, by the number of ranks, as
                           averages are.
    Errors                 ValueError.
    """

    def __init__(
        self, compression: type[Compressor], sparse_as_dense: bool, op: int, gradient_predivide_factor: float, num_groups: int,
        groups: Any, process_set: ProcessSet, scale_local_gradients: bool, device_dense: str = "", device_sparse: str = "",
    ) -> None:  # fmt: skip
        self.op = resolve(op, None)
        if gradient_predivide_factor != 1.0 and self.op != Average:
            raise ValueError("gradient_predivide_factor needs op=Average")
        groups = given_groups(num_groups, groups)
        self._groups = [[identity(each) for each in group] for group in groups] if isinstance(groups, (list, tuple)) else groups
        self.compression = compression
        self.sparse_as_dense = sparse_as_dense
        self.process_set = process_set
        self._predivide = float(gradient_predivide_factor)
        self._scale_local_gradients = scale_local_gradients
        self._devices = {"device_dense": device_dense, "device_sparse": device_sparse}
        self.local: set[Any] = set()

    def register_local(self, variable: Any) -> None:
        """Excludes the gradients of a variable from the reduction."""
        self.local.add(identity(variable))

    def is_local(self, variable: Any) -> bool:
        """True if register_local() was called with the variable."""
        return identity(variable) in self.local

    def reduced(self, gradients: Sequence[Any], variables: Sequence[Any]) -> list[Any]:
        """The reduced gradients of `variables`, in their order. None stays None. A rank that is not in the set keeps
        its own.

        Outside of functions, a gradient that is None only on some ranks counts as zeros there. In a function it cannot:
        the ranks then wait for each other in operations that are named after the variables.
        Errors  ValueError for a set that is not registered, and those of the operations.
        """
        process_sets.identifier(self.process_set)  # checks the set also if no gradient is reduced
        results = list(gradients)
        if self.process_set.included() is False:
            return results
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
        if tf.executing_eagerly() and (self.process_set.size() or 1) > 1:
            places = self._complete(results, variables)
        with tf.name_scope("DistributedGradients"):
            for group in self._grouped(places, results, variables):
                name = None if tf.executing_eagerly() else _name_of([variables[index] for index in group])
                for index, gradient in zip(group, self._reduced_together([results[index] for index in group], name)):
                    results[index] = gradient
        return results

    def _scaled(self, gradient: Any) -> Any:
        """Scales a local gradient, so that a step moves the variable as far as the average of the ranks' gradients
        would if the others were zero.
        """
        if not self._scale_local_gradients:
            return gradient
        set_id = process_sets.identifier(self.process_set)
        if isinstance(gradient, tf.IndexedSlices):
            size = tf.cast(operations.size_op(set_id), gradient.values.dtype)
            return tf.IndexedSlices(gradient.values / size, gradient.indices, gradient.dense_shape)
        return gradient / tf.cast(operations.size_op(set_id), gradient.dtype)

    def _complete(self, gradients: list[Any], variables: Sequence[Any]) -> list[int]:
        """Puts zeros in the place of each gradient that only other ranks have. Returns the places of all gradients to
        reduce.

        If some ranks have rows and others a dense gradient, all ranks make it dense.
        """
        places = [index for index, variable in enumerate(variables) if not self.is_local(variable)]
        kinds = bytearray(len(_KINDS) * len(places))
        for number, index in enumerate(places):
            if gradients[index] is not None:
                kinds[len(_KINDS) * number + _KINDS.index(_kind_of(gradients[index]))] = 1
        any_rank = Reduction(Max, 1.0, 1.0, self.process_set)
        if places:
            handles.run(objects.calls.allreduce(kinds, "gradients that are not None", any_rank, in_place=True))
        there = []
        for number, index in enumerate(places):
            found = [kind for each, kind in enumerate(_KINDS) if kinds[len(_KINDS) * number + each]]
            if not found:
                continue
            there.append(index)
            if gradients[index] is None:
                gradients[index] = _zeros(variables[index], found[0])
            if len(found) > 1:
                gradients[index] = tf.convert_to_tensor(gradients[index])
        return there

    def _reduced_together(self, gradients: list[Any], name: str | None) -> list[Any]:
        scaled: dict[str, Any] = {}
        if self._predivide != 1.0:
            scaled = {"prescale_factor": 1.0 / self._predivide, "postscale_factor": self._predivide}
        options: dict[str, Any] = {"compression": self.compression, "op": self.op, "process_set": self.process_set, **self._devices}
        if len(gradients) == 1 or any(isinstance(gradient, tf.IndexedSlices) for gradient in gradients):
            return [
                operations.allreduce(each, name=name, **options, **({} if isinstance(each, tf.IndexedSlices) else scaled))
                for each in gradients
            ]
        return operations.grouped_allreduce(gradients, name=name, **options, **scaled)

    def _grouped(self, places: list[int], gradients: Sequence[Any], variables: Sequence[Any]) -> Iterable[list[int]]:
        """The indices of the gradients of each operation. Gradients that are IndexedSlices are operations by themselves."""
        sparse = [index for index in places if isinstance(gradients[index], tf.IndexedSlices)]
        yield from ([index] for index in sparse)
        dense = [index for index in places if index not in sparse]
        sizes = [_bytes(gradient) if gradient is not None else 0 for gradient in gradients]
        yield from grouped(dense, sizes, [identity(variable) for variable in variables], self._groups, bucket_settings().bucket_bytes)


#: The kinds of gradients that are not None: dense, or tf.IndexedSlices with indices of these types.
_KINDS = (None, tf.int32, tf.int64)


def _kind_of(gradient: Any) -> Any:
    return gradient.indices.dtype if isinstance(gradient, tf.IndexedSlices) else None


def _zeros(variable: Any, kind: Any) -> Any:
    """A gradient that changes no sum, of the kind that other ranks have."""
    shape = [int(extent) for extent in variable.shape]
    if kind is None:
        return tf.zeros(shape, variable.dtype)
    rows = tf.zeros([0, *shape[1:]], variable.dtype)
    return tf.IndexedSlices(rows, tf.zeros([0], kind), dense_shape=tf.constant(shape, kind))


def _name_of(variables: Sequence[Any]) -> str:
    """The name of a node, from the names of the variables: "gradients_of_dense/kernel_and_dense/bias"."""
    shown = 3
    names = [str(getattr(variable, "path", None) or variable.name).split(":")[0] for variable in variables[:shown]]
    if len(variables) > shown:
        names.append(f"{len(variables) - shown}_more")
    return "gradients_of_" + re.sub("[^a-zA-Z0-9_./]", "_", "_and_".join(names))


def _bytes(gradient: Any) -> int:
    """The bytes of a gradient; 0 if they are not yet known."""
    return gradient.shape.num_elements() * gradient.dtype.size if gradient.shape.is_fully_defined() else 0


def identity(variable: Any) -> Any:
    """An identity that is the same for a variable of Keras and the TensorFlow variable in it."""
    inner = getattr(variable, "value", None)
    return id(inner) if isinstance(inner, tf.Variable) else id(variable)
