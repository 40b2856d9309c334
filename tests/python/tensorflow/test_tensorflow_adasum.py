"""op=Adasum in TensorFlow: eager, in functions, by the tape, and the optimizers of tf.compat.v1.train, beside a tree in float64."""

import numpy
import tensorflow_cases
from adasum_tree import KINDS, error, inputs, tree


def every_dtype_and_kind():
    tf, hvd = tensorflow_cases.module()
    largest = 0.0
    limits = {tf.float16: (2.0**-14, 65504.0), tf.bfloat16: (2.0**-126, 3e38), tf.float32: (2.0**-126, 3e38), tf.float64: (2.0**-1022, 1e308)}
    for dtype, (tiny, most) in limits.items():
        eps = 2.0**-7 if dtype == tf.bfloat16 else float(numpy.finfo(dtype.as_numpy_dtype).eps)
        for kind in KINDS:
            tensors = [tf.cast(tf.constant(array), dtype) for array in inputs(kind, 2, tiny, most)]
            expected = tree([tf.cast(tensor, tf.float64).numpy() for tensor in tensors])
            graph = tf.function(lambda tensor: hvd.allreduce(tensor, op=hvd.Adasum))
            for result in (hvd.allreduce(tensors[hvd.rank()], op=hvd.Adasum), graph(tensors[hvd.rank()])):
                largest = max(largest, error(tf.cast(result, tf.float64).numpy(), expected) / eps)
    return largest < 100


def groups_and_what_is_refused():
    tf, hvd = tensorflow_cases.module()
    x = tf.constant([1.0 + hvd.rank(), 2.0])
    pair = hvd.grouped_allreduce([x, tf.cast(x, tf.float64)], op=hvd.Adasum)
    alone = hvd.allreduce(x, op=hvd.Adasum)
    half = hvd.allreduce(x, op=hvd.Adasum, compression=hvd.Compression.fp16, prescale_factor=0.5, postscale_factor=2.0)
    rounded = float(tf.reduce_max(tf.abs(half - alone) / alone)) < 2.0**-10  # the result is a number of 16 bits once
    same = [bool(tf.reduce_all(pair[0] == alone)), tensorflow_cases.close([pair[1]], [alone]), rounded]
    rows = tf.IndexedSlices(tf.ones([1, 2]), tf.constant([0]), tf.constant([2, 2]))
    refused = []
    for wrong in (
        lambda: hvd.allreduce(tf.constant([1, 2]), op=hvd.Adasum),
        lambda: hvd.grouped_allreduce([tf.constant([True])], op=hvd.Adasum),
        lambda: hvd.reducescatter(x, op=hvd.Adasum),
        lambda: hvd.grouped_reducescatter([x], op=hvd.Adasum),
        lambda: hvd.allreduce(rows, op=hvd.Adasum),
        lambda: hvd.DistributedOptimizer(tf.keras.optimizers.SGD(0.1), op=hvd.Adasum),
        lambda: hvd.DistributedOptimizer(
            tf.compat.v1.train.GradientDescentOptimizer(0.1), op=hvd.Adasum, average_aggregated_gradients=True
        ),
    ):
        try:
            wrong()
        except Exception as error_of_call:
            refused.append(type(error_of_call).__name__)
    return same, refused


def by_the_tape():
    tf, hvd = tensorflow_cases.module()
    variables = tensorflow_cases.variables_of_model(tf)
    x, y = tensorflow_cases.data(tf, hvd.rank())

    def gradients():
        with tf.GradientTape() as tape:
            loss = tensorflow_cases.loss_of(tf, variables, x, y)
        return hvd.DistributedGradientTape(tape, op=hvd.Adasum).gradient(loss, variables)

    own = []
    for rank in range(2):
        with tf.GradientTape() as tape:
            loss = tensorflow_cases.loss_of(tf, variables, *tensorflow_cases.data(tf, rank))
        own.append([gradient.numpy() for gradient in tape.gradient(loss, variables)])
    expected = [tree(of_ranks) for of_ranks in zip(*own)]
    return tensorflow_cases.close(gradients(), expected), tensorflow_cases.close(tf.function(gradients)(), expected)


def _steps(optimizer_of, passes, distributed):
    """Two steps of a graph of TensorFlow 1 with this rank's data, with `passes` runs for each. The value after each run."""
    tf, hvd = tensorflow_cases.module()
    v1 = tf.compat.v1
    with tf.Graph().as_default():
        w = v1.get_variable("w", initializer=[1.0, 2.0], use_resource=optimizer_of is not v1.train.AdamOptimizer)
        scale = tf.constant([[1.0, 0.5], [-0.25, 3.0]][hvd.rank()])
        loss = tf.reduce_sum(scale * w * w)
        optimizer = optimizer_of(0.1)
        if distributed:
            optimizer = hvd.DistributedOptimizer(optimizer, op=hvd.Adasum, backward_passes_per_step=passes)
        step = v1.train.get_or_create_global_step()
        train = optimizer.minimize(loss, global_step=step)
        values = []
        with v1.train.MonitoredTrainingSession() as session:
            for _ in range(2 * passes):
                session.run(train)
                values.append(session.run(w))
            return values, int(session.run(step))


def optimizers_of_tensorflow_1():
    """The first step is the tree of the ranks' own first steps; all ranks have the same variables, also after more steps."""
    tf, hvd = tensorflow_cases.module()
    found = []
    for optimizer_of in (tf.compat.v1.train.GradientDescentOptimizer, tf.compat.v1.train.AdamOptimizer):
        alone, _ = _steps(optimizer_of, 1, False)
        changes = hvd.allgather(tf.constant([alone[0] - numpy.float32([1, 2])])).numpy()
        values, steps = _steps(optimizer_of, 1, True)
        found.append(tensorflow_cases.close([values[0]], [tree(changes) + [1, 2]]))
        found.append(steps)
        everywhere = hvd.allgather(tf.constant([values[1]])).numpy()
        found.append(bool((everywhere[0] == everywhere[1]).all()))
    return found


def several_passes_of_tensorflow_1():
    """The variable changes after every second run, by the sum of two equal gradients."""
    tf, hvd = tensorflow_cases.module()
    descent = tf.compat.v1.train.GradientDescentOptimizer
    values, steps = _steps(descent, 2, True)
    twice, _ = _steps(lambda rate: descent(2 * rate), 1, True)
    return tensorflow_cases.close(values, [[1, 2], twice[0], twice[0], twice[1]]), steps


def eagerly():
    tf, hvd = tensorflow_cases.module()
    w = tf.Variable([1.0, 1.0])
    optimizer = hvd.DistributedOptimizer(tf.compat.v1.train.GradientDescentOptimizer(1.0), op=hvd.Adasum)
    optimizer.apply_gradients([(tf.one_hot(hvd.rank(), 2), w)])
    return w.numpy().tolist()


CASES = {
    every_dtype_and_kind: True,
    groups_and_what_is_refused: (
        [True, True, True],
        ["RuntimeError", "RuntimeError", "RuntimeError", "RuntimeError", "NotImplementedError", "ValueError", "ValueError"],
    ),
    by_the_tape: (True, True),
    optimizers_of_tensorflow_1: [True, 2, True, True, 2, True],
    several_passes_of_tensorflow_1: (True, 2),
    eagerly: [0.0, 0.0],
}  # fmt: skip

test_every_case = tensorflow_cases.test(CASES)
