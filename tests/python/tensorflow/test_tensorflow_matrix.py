"""Every collective of runjob.tensorflow against NumPy, eagerly: all dtypes, reductions and shapes, tensors and variables."""

import types

import pytest

import collective_cases


def run_all():
    import tensorflow as tf

    import runjob.tensorflow as hvd

    def make(array, dtype, layout):
        tensor = tf.constant(array, dtype=getattr(tf, dtype))
        return tf.Variable(tensor) if layout == "in place" else tensor

    def to_numpy(tensor):
        return (tf.cast(tensor, tf.float32) if tensor.dtype == tf.bfloat16 else tf.convert_to_tensor(tensor)).numpy()

    def alltoall(*arguments, **options):
        received, counts = hvd.alltoall(*arguments, **options)
        return received, counts.numpy()

    module = types.SimpleNamespace(
        **{name: getattr(hvd, name) for name in dir(hvd) if not name.startswith("_")}
        | {
            "alltoall": alltoall,
            "allreduce_": lambda variable, **options: variable.assign(hvd.allreduce(variable, **options)),
            "grouped_allgather_async": hvd.grouped_allgather,
            "synchronize": lambda outputs: outputs,
        }
    )
    # The binding for TensorFlow is compiled code with a table of dtypes of its own, so that all of them are combined.
    dtypes = list(collective_cases.DTYPES)
    return collective_cases.run(module, collective_cases.Framework(dtypes, make, to_numpy, crossed=dtypes))


@pytest.mark.parametrize("np", [2, 3])
def test_every_collective_agrees_with_numpy(run_ranks, np):
    assert run_ranks(run_all, np).results == [np] * np
