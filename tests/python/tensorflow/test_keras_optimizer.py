"""python/runjob/tensorflow/keras_optimizer.py: steps on two ranks against those of one process that has all of the data."""

import warnings

import numpy

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


def outside_of_its_set():
    """The rank that is not in the optimizer's set steps on its own gradients, after several passes, too."""
    tf, hvd = tensorflow_cases.module()
    only = hvd.add_process_set([1])
    optimizer = hvd.DistributedOptimizer(tf.keras.optimizers.SGD(0.1), process_set=only, backward_passes_per_step=2)
    found = tensorflow_cases.steps(tf, hvd, optimizer, passes=2)
    hvd.remove_process_set(only)
    expected = tensorflow_cases.steps_alone(tf, tf.keras.optimizers.SGD(0.1), factor=2.0, rank=hvd.rank())
    return tensorflow_cases.close(found, expected, 1e-4)


def distributed_twice():
    """The second call's options replace the first one's, and gradients are reduced once; the optimizer keeps its local variables."""
    tf, hvd = tensorflow_cases.module()
    optimizer = hvd.DistributedOptimizer(tf.keras.optimizers.SGD(0.1), backward_passes_per_step=2)
    local = tf.Variable(0.0)
    optimizer.register_local_var(local)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        again = hvd.DistributedOptimizer(optimizer, op=hvd.Sum)
    told = [each for each in caught if "this SGD is distributed already: the options of this call replace" in str(each.message)]
    right = tensorflow_cases.close(tensorflow_cases.steps(tf, hvd, again), tensorflow_cases.steps_alone(tf, tf.keras.optimizers.SGD(0.1), factor=2.0), 1e-4)
    return len(told), told[0].filename == __file__, again is optimizer, right, again._accumulation.reduction.is_local(local)


def scales_of_losses():
    """A gradient that overflows on one rank keeps all ranks from a step, and they go on with the same scale."""
    tf, hvd = tensorflow_cases.module()
    if not tensorflow_cases.is_keras_3():
        return SCALES
    scaling = tf.keras.mixed_precision.LossScaleOptimizer
    x, y = numpy.ones((4, 3), "float32"), numpy.ones((4, 2), "float32")
    if hvd.rank() == 0:
        x[1] = 60000
    found = []
    tf.keras.mixed_precision.set_global_policy("mixed_float16")
    try:
        for optimizer in (
            hvd.DistributedOptimizer(tf.keras.optimizers.SGD(0.1)),
            hvd.DistributedOptimizer(tf.keras.optimizers.SGD(0.1), backward_passes_per_step=2),
            hvd.DistributedOptimizer(scaling(tf.keras.optimizers.SGD(0.1))),
        ):
            model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(2, kernel_initializer="zeros")])
            for _ in range(2):  # Keras puts another one that scales the loss around it
                model.compile(optimizer=optimizer, loss="mse")
            model.fit(x, y, batch_size=1, epochs=1, verbose=0, shuffle=False)
            kernels = hvd.allgather(tf.reshape(model.layers[0].kernel, [1, -1]))
            used = model.optimizer
            found.append((int(used.iterations.numpy()), float(used.dynamic_scale.numpy()), bool((kernels[0] == kernels[1]).numpy().all())))
    finally:
        tf.keras.mixed_precision.set_global_policy("float32")
    return found


SCALES = [(3, 16384.0, True), (1, 16384.0, True), (3, 16384.0, True)]

CASES = {
    scales_of_losses: SCALES,
    optimizers: [],
    outside_of_its_set: True,
    distributed_twice: (1, True, True, True, True),
}  # fmt: skip

test_every_case = tensorflow_cases.test(CASES)
