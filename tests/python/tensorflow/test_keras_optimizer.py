"""python/runjob/tensorflow/keras_optimizer.py: steps on two ranks against those of one process that has all of the data."""

import tensorflow_cases


def optimizers():
    """Of Keras as it is, and of Keras 2 where it has them; the class keeps its name."""
    tf, hvd = tensorflow_cases.module()
    wrong = []
    kinds = {"Adam": tf.keras.optimizers.Adam, "SGD": lambda rate: tf.keras.optimizers.SGD(rate, momentum=0.9)}
    legacy = getattr(tf.keras.optimizers, "legacy", None)
    if not tensorflow_cases.is_keras_3():
        kinds["legacy.Adam"] = legacy.Adam
    for name, make in kinds.items():
        optimizer = hvd.DistributedOptimizer(make(0.1))
        assert type(optimizer).__name__ == name.split(".")[-1] and isinstance(optimizer, type(make(0.1)))
        if not tensorflow_cases.close(tensorflow_cases.steps(tf, hvd, optimizer), tensorflow_cases.steps_alone(tf, make(0.1)), 1e-4):
            wrong.append(name)
    return wrong


CASES = {
    optimizers: [],
}  # fmt: skip

test_every_case = tensorflow_cases.test(CASES)
