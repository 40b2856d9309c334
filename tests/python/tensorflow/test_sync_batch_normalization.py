"""python/runjob/tensorflow/sync_batch_normalization.py against batch normalization of the whole batch."""

import numpy

import tensorflow_cases


def batch_normalization():
    """Statistics, outputs and gradients of the whole batch; rows differ in number."""
    tf, hvd = tensorflow_cases.module()
    random = numpy.random.default_rng(2)
    data = random.normal(size=(10, 3)).astype("float32")
    mine = tf.constant(data[:3] if hvd.rank() == 0 else data[3:])
    rows = slice(0, 3) if hvd.rank() == 0 else slice(3, 10)

    def run(layer, given):
        with tf.GradientTape() as tape:
            tape.watch(given)
            output = layer(given, training=True)
            loss = tf.reduce_sum(output**3)
        return output, tape.gradient(loss, given)

    whole, part = tf.keras.layers.BatchNormalization(), hvd.SyncBatchNormalization()
    expected = run(whole, tf.constant(data))
    output, gradient = run(part, mine)
    return (
        tensorflow_cases.close([output, gradient], [expected[0][rows], expected[1][rows]], 1e-3),
        tensorflow_cases.close([part.moving_mean.numpy(), part.moving_variance.numpy()], [whole.moving_mean.numpy(), whole.moving_variance.numpy()], 1e-4),
    )


def a_large_mean():
    """The variance is not lost beside the square of the mean."""
    tf, hvd = tensorflow_cases.module()
    data = (10000 + numpy.random.default_rng(3).normal(size=(64, 3))).astype("float32")
    rows = slice(0, 20) if hvd.rank() == 0 else slice(20, 64)
    whole, part = tf.keras.layers.BatchNormalization(), hvd.SyncBatchNormalization()
    expected, output = whole(tf.constant(data), training=True), part(tf.constant(data[rows]), training=True)
    return tensorflow_cases.close([output, part.moving_variance.numpy()], [expected[rows], whole.moving_variance.numpy()], 1e-2)


def a_set_that_is_not_registered():
    tf, hvd = tensorflow_cases.module()
    try:
        hvd.SyncBatchNormalization(process_set=hvd.ProcessSet([0]))(tf.ones([2, 3]), training=True)
    except ValueError as error:
        return "is not registered" in str(error)
    return "nothing was raised"


CASES = {
    batch_normalization: (True, True),
    a_large_mean: True,
    a_set_that_is_not_registered: True,
}  # fmt: skip

test_every_case = tensorflow_cases.test(CASES)
