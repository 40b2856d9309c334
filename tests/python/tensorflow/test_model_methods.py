"""python/runjob/model_methods.py: models train although Keras 3 would compile them, and take arguments of Keras 2."""

import warnings

import tensorflow_cases


def compiled_models():
    """compile() and fit() as they are; one warning, for the first; jit_compile=True stays what was asked for."""
    tf, hvd = tensorflow_cases.module()
    x, y = (tensor.numpy() for tensor in tensorflow_cases.data(tf, hvd.rank()))
    found = []

    class Model(tf.keras.Sequential):
        def _resolve_auto_jit_compile(self):
            return True  # as Keras 3 decides where there is a GPU

    def make():
        return Model([tf.keras.Input((3,)), tf.keras.layers.Dense(2)])

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            model = make()
            model.compile(optimizer=hvd.DistributedOptimizer(tf.keras.optimizers.SGD(0.1)), loss="mse", experimental_run_tf_function=False)
            model.fit(x, y, epochs=1, batch_size=4, verbose=0, workers=1)  # as scripts for Keras 2 say
            model.predict(x, verbose=0, workers=1)
            found.append(bool(model.jit_compile))
    told = [str(each.message) for each in caught if "XLA cannot compile collectives" in str(each.message)]
    left_out = [each for each in caught if "() of Keras 3 has no workers" in str(each.message)]
    is_keras_3 = tensorflow_cases.is_keras_3()
    plain = make()
    plain.compile(optimizer="sgd", loss="mse")
    model.compile(optimizer=model.optimizer, loss="mse", jit_compile=True)
    try:
        model.fit(x, y, epochs=1, batch_size=4, verbose=0)
        error = "nothing was raised"
    except ValueError as caught_error:
        error = str(caught_error)
    try:
        plain.fit(x, y, epochs=1, verbose=0, workers=1)
        takes_workers = True
    except TypeError:
        takes_workers = False
    return (
        found, len(told) == int(is_keras_3), len(left_out) == 4 * is_keras_3, bool(plain.jit_compile) == is_keras_3,
        "jit_compile=False" in error, takes_workers != is_keras_3,
    )  # fmt: skip


def deciding_callbacks():
    """fit() of TensorFlow's Keras warns too of callbacks that have no averages before them."""
    tf, hvd = tensorflow_cases.module()
    from runjob.tensorflow.keras.callbacks import MetricAverageCallback

    x, y = (tensor.numpy() for tensor in tensorflow_cases.data(tf, hvd.rank()))
    model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(2)])
    model.compile(optimizer=hvd.DistributedOptimizer(tf.keras.optimizers.SGD(0.1)), loss="mse")
    found = []
    for before in ([], [MetricAverageCallback()]):
        stop = tf.keras.callbacks.EarlyStopping("loss", patience=9)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(x, y, batch_size=4, verbose=0, callbacks=[*before, stop])
        found.append(sum("EarlyStopping in callbacks= decides by the metrics" in str(each.message) for each in caught))
    return found


CASES = {compiled_models: ([False, False], True, True, True, True, True), deciding_callbacks: [1, 0]}

test_every_case = tensorflow_cases.test(CASES)
