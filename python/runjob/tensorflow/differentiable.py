"""The gradients of the operations, for GradientTape and tf.gradients. The gradient of rank r's output flows to the
inputs from which this output was computed, on any rank. Sums over ranks are averaged where Horovod averages them.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from .. import job, process_sets
from ..reduce_ops import Average, Sum
from . import nodes
from .kernels import operations
from .nodes import Naming

_REDUCTION = ("reduce_op", "prescale_factor", "postscale_factor")


def register() -> None:
    """Registers the gradients with TensorFlow. To be called once."""
    for name, function in _GRADIENTS.items():
        tf.RegisterGradient(name)(function)


def _attributes(operation: Any, *names: str) -> dict[str, Any]:
    return {name: operation.get_attr(name) for name in names}


def _set_of(operation: Any) -> int:
    return int(operation.get_attr("process_set_id"))


def _ranks(set_id: int) -> Any:
    return operations().horovod_size(process_set_id=set_id)


def _allreduce(operation: Any, gradient: Any) -> Any:
    attributes = _attributes(operation, *_REDUCTION)
    return nodes.run(nodes.ALLREDUCE, (gradient,), Naming(), _set_of(operation), **attributes)


def _grouped_allreduce(operation: Any, *gradients: Any) -> Any:
    attributes = _attributes(operation, *_REDUCTION)
    return nodes.run(nodes.GROUPED_ALLREDUCE, (list(gradients),), Naming(), _set_of(operation), **attributes)


def _allgather(operation: Any, gradient: Any) -> Any:
    return _gathered(operation.inputs[0], gradient, _set_of(operation))


def _grouped_allgather(operation: Any, *gradients: Any) -> Any:
    return [_gathered(*pair, _set_of(operation)) for pair in zip(operation.inputs, gradients)]


def _gathered(tensor: Any, gradient: Any, set_id: int) -> Any:
    """This rank's rows of the averaged gradient."""
    average = nodes.run(nodes.ALLREDUCE, (gradient,), Naming(), set_id, reduce_op=Average)
    rows = tf.shape(tensor)[0]
    all_rows = nodes.run(nodes.ALLGATHER, (tf.reshape(rows, [1]),), Naming(), set_id)
    first = tf.reduce_sum(all_rows[: _own_index(set_id)])
    return average[first : first + rows]


def _own_index(set_id: int) -> int:
    if set_id == 0:
        return job.rank()
    return process_sets.get_process_set_ids_and_ranks()[set_id].index(job.rank())


def _broadcast(operation: Any, gradient: Any) -> Any:
    return _broadcasted(operation, gradient)


def _grouped_broadcast(operation: Any, *gradients: Any) -> Any:
    return [_broadcasted(operation, gradient) for gradient in gradients]


def _broadcasted(operation: Any, gradient: Any) -> Any:
    average = nodes.run(nodes.ALLREDUCE, (gradient,), Naming(), _set_of(operation), reduce_op=Average)
    is_root = tf.equal(operations().horovod_rank(), operation.get_attr("root_rank"))
    return tf.where(is_root, average, tf.zeros_like(average))


def _alltoall(operation: Any, gradient: Any, _: Any) -> Any:
    """Sends the gradients of rows back to the ranks that the rows came from."""
    returned, _ = nodes.run(nodes.ALLTOALL, (gradient, operation.outputs[1]), Naming(), _set_of(operation))
    return returned, None


def _reducescatter(operation: Any, gradient: Any) -> Any:
    return _scattered(operation, gradient)


def _grouped_reducescatter(operation: Any, *gradients: Any) -> Any:
    return [_scattered(operation, gradient) for gradient in gradients]


def _scattered(operation: Any, gradient: Any) -> Any:
    reduce_op, prescale, postscale = _attributes(operation, *_REDUCTION).values()
    if reduce_op not in (Average, Sum):
        raise NotImplementedError("the gradient of reducescatter is defined for op=Average and op=Sum")
    factor = tf.cast(prescale * postscale, gradient.dtype)
    if reduce_op == Sum:
        factor *= tf.cast(_ranks(_set_of(operation)), gradient.dtype)
    return nodes.run(nodes.ALLGATHER, (gradient * factor,), Naming(), _set_of(operation))


_GRADIENTS = {
    "HorovodAllreduce": _allreduce,
    "HorovodGroupedAllreduce": _grouped_allreduce,
    "HorovodAllgather": _allgather,
    "HorovodGroupedAllgather": _grouped_allgather,
    "HorovodBroadcast": _broadcast,
    "HorovodGroupedBroadcast": _grouped_broadcast,
    "HorovodAlltoall": _alltoall,
    "HorovodReducescatter": _reducescatter,
    "HorovodGroupedReducescatter": _grouped_reducescatter,
}
