"""python/runjob/tensorflow/accumulation.py: several backward passes for a step."""

import tensorflow_cases


def several_passes():
    """Steps after every second pass, of sums or averages: variables stay as they are in between."""
    tf, hvd = tensorflow_cases.module()
    averaged = hvd.DistributedOptimizer(
        tf.keras.optimizers.Adam(0.1), backward_passes_per_step=2, average_aggregated_gradients=True
    )
    summed = hvd.DistributedOptimizer(tf.keras.optimizers.SGD(0.1), backward_passes_per_step=3)
    return (
        tensorflow_cases.close(tensorflow_cases.steps(tf, hvd, averaged, 2), tensorflow_cases.steps_alone(tf, tf.keras.optimizers.Adam(0.1)), 1e-4),
        tensorflow_cases.close(tensorflow_cases.steps(tf, hvd, summed, 3), tensorflow_cases.steps_alone(tf, tf.keras.optimizers.SGD(0.1), 3.0), 1e-4),
        int(averaged.iterations.numpy()),
    )


def gradients_of_some_passes():
    """A gradient that comes in some of a step's two passes only: from the second on, or not in the last."""
    tf, hvd = tensorflow_cases.module()
    found = []
    for wrap, first_step in ((lambda function: function, (False, True)), (tf.function, (True, False))):
        optimizer = hvd.DistributedOptimizer(tf.keras.optimizers.SGD(1.0), backward_passes_per_step=2)
        always, sometimes = tf.Variable([0.0]), tf.Variable([0.0])

        @wrap
        def step(uses_both):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(always + sometimes if uses_both else always) * (hvd.rank() + 1)
            optimizer.apply_gradients(zip(tape.gradient(loss, [always, sometimes]), [always, sometimes]))

        for uses_both in (*first_step, *reversed(first_step), True, True):
            step(uses_both)
            found.append((float(always[0]), float(sometimes[0])))
    return found


def steps_that_are_counted():
    """Keras's schedules go by `iterations`."""
    tf, hvd = tensorflow_cases.module()
    schedule = tf.keras.optimizers.schedules.ExponentialDecay(1.0, 1, 0.5)
    optimizer = hvd.DistributedOptimizer(tf.keras.optimizers.SGD(schedule), backward_passes_per_step=2)
    variable = tf.Variable([0.0])
    values = []
    for _ in range(4):
        optimizer.apply_gradients([(tf.constant([1.0]), variable)])
        values.append(float(variable[0]))
    return values, int(optimizer.iterations.numpy())


def reduced_twice():
    """By a tape, and by the optimizer that applies the gradients."""
    tf, hvd = tensorflow_cases.module()
    variable, values = tf.Variable([0.0]), []
    for op in (hvd.Average, hvd.Sum):
        optimizer = hvd.DistributedOptimizer(tf.keras.optimizers.SGD(1.0), op=op)
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(variable) * (hvd.rank() + 1)
        gradients = hvd.DistributedGradientTape(tape, op=op).gradient(loss, [variable])
        optimizer.apply_gradients(zip(gradients, [variable]))
        values.append(float(variable[0]))
    return values


def lists_in_turn():
    """Each of two lists of variables has passes of its own."""
    tf, hvd = tensorflow_cases.module()
    optimizer = hvd.DistributedOptimizer(tf.keras.optimizers.SGD(1.0), backward_passes_per_step=2)
    one, other = tf.Variable([0.0]), tf.Variable([0.0])
    if hasattr(optimizer, "apply"):
        optimizer.build([one, other])
    for _ in range(2):
        optimizer.apply_gradients([(tf.constant([1.0]), one)])
        optimizer.apply_gradients([(tf.constant([10.0]), other)])
    return float(one[0]), float(other[0])


PASSES = [(0.0, 0.0), (-3.0, -1.5), (-3.0, -1.5), (-6.0, -3.0), (-6.0, -3.0), (-9.0, -6.0)]

CASES = {
    several_passes: (True, True, 3),
    gradients_of_some_passes: PASSES * 2,
    steps_that_are_counted: ([0.0, -2.0, -2.0, -3.0], 2),
    reduced_twice: [-1.5, -7.5],
    lists_in_turn: (-2.0, -20.0),
}  # fmt: skip

test_every_case = tensorflow_cases.test(CASES)
