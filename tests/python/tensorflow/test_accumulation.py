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


CASES = {
    several_passes: (True, True, 3),
}  # fmt: skip

test_every_case = tensorflow_cases.test(CASES)
