"""python/runjob/tensorflow/keras/optimizers.py: what it adds to those of runjob.tensorflow."""

import tensorflow_cases


def partial():
    """The gradients of a local layer stay this rank's, divided by the size."""
    import tensorflow as tf

    import runjob.tensorflow.keras as hvd

    layers = [tf.keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros") for _ in range(2)]
    for layer in layers:
        layer.build((None, 1))
    optimizer = hvd.PartialDistributedOptimizer(tf.keras.optimizers.SGD(1.0), local_layers=layers[1])
    variables = [layer.trainable_variables[0] for layer in layers]
    optimizer.apply_gradients([(tf.fill([1, 1], 2.0 * hvd.rank()), variable) for variable in variables])
    found = [float(tf.convert_to_tensor(variable)[0, 0]) for variable in variables]
    try:
        hvd.DistributedOptimizer(tf.keras.optimizers.SGD(1.0), op=3)
    except ValueError as error:
        found.append("op=Average and op=Sum" in str(error))
    return found


CASES = {partial: lambda rank: [-1.0, -1.0 * rank, True]}

test_every_case = tensorflow_cases.test(CASES)
