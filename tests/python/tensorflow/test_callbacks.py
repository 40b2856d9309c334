"""python/runjob/tensorflow/keras/callbacks.py: models that fit() trains on two ranks."""

import numpy

import tensorflow_cases


def _keras():
    import tensorflow as tf

    import runjob.tensorflow.keras as hvd

    return tf, hvd


def _model(tf, optimizer, seed):
    tf.keras.utils.set_random_seed(seed)
    model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(4, activation="tanh"), tf.keras.layers.Dense(2)])
    model.compile(optimizer=optimizer, loss="mse")
    return model


def fit_as_one_process():
    """The ranks begin with other weights, have half of the data each, and end with what one process comes to that has all."""
    tf, hvd = _keras()
    x, y = (tensor.numpy() for tensor in tensorflow_cases.data(tf, hvd.rank()))
    model = _model(tf, hvd.DistributedOptimizer(tf.keras.optimizers.SGD(0.05)), seed=hvd.rank())
    # A first batch that changes nothing, since the broadcast comes after it.
    hvd.broadcast_global_variables  # noqa: B018  there
    callback = hvd.callbacks.BroadcastGlobalVariablesCallback(0)
    rate = model.optimizer.learning_rate
    model.optimizer.learning_rate = 0.0
    model.fit(x, y, batch_size=4, epochs=1, verbose=0, callbacks=[callback])
    model.optimizer.learning_rate = 0.05
    history = model.fit(x, y, batch_size=4, epochs=5, verbose=0, shuffle=False, callbacks=[hvd.callbacks.MetricAverageCallback()])
    assert rate is not None

    alone = _model(tf, tf.keras.optimizers.SGD(0.0), seed=0)
    x, y = (tensor.numpy() for tensor in tensorflow_cases.data(tf))
    alone.fit(x, y, batch_size=8, epochs=1, verbose=0)
    alone.optimizer.learning_rate = 0.05
    expected = alone.fit(x, y, batch_size=8, epochs=5, verbose=0, shuffle=False)
    return (
        tensorflow_cases.close(model.get_weights(), alone.get_weights(), 1e-3),
        bool(numpy.allclose(history.history["loss"], expected.history["loss"], rtol=1e-3)),
    )


def what_is_broadcast():
    """Weights and the optimizer's state, but for local variables."""
    tf, hvd = _keras()
    x, y = (tensor.numpy() for tensor in tensorflow_cases.data(tf, 0))
    model = _model(tf, tf.keras.optimizers.SGD(0.1, momentum=0.9), seed=hvd.rank())
    kept = model.layers[1].variables[0]
    callback = hvd.callbacks.BroadcastGlobalVariablesCallback(1, local_variables=[kept])
    model.fit(x, y, batch_size=4, epochs=1, verbose=0, callbacks=[callback])

    def is_alike(variable):
        values = hvd.allgather(tf.reshape(tf.cast(tf.convert_to_tensor(variable), tf.float32), [1, -1]))
        return bool((values[0] == values[1]).all())

    state = model.optimizer.variables() if callable(model.optimizer.variables) else model.optimizer.variables
    others = [variable for variable in [*model.variables, *state] if variable is not kept]
    # One step of other weights each, on one rank more than the batch of the broadcast: nothing else has changed them.
    return is_alike(kept), all(is_alike(variable) for variable in others)


def averages_of_metrics():
    tf, hvd = _keras()
    logs = {"b": 1.0 + hvd.rank(), "a": numpy.float32(hvd.rank()), "text": "kept", "array": numpy.array([[1.0, hvd.rank()]])}
    hvd.callbacks.MetricAverageCallback().on_epoch_end(0, logs)
    hvd.callbacks.MetricAverageCallback().on_epoch_end(0, None)
    return {**logs, "array": logs["array"].tolist()}


def rates():
    """Of a warm-up over two epochs of two steps, and of a schedule after it."""
    tf, hvd = _keras()
    seen = []

    class Recorder(tf.keras.callbacks.Callback):
        def on_batch_begin(self, batch, logs=None):
            seen.append(round(float(tf.convert_to_tensor(self.model.optimizer.learning_rate)), 6))

    model = _model(tf, tf.keras.optimizers.SGD(0.4, momentum=0.9), seed=0)
    x, y = (tensor.numpy() for tensor in tensorflow_cases.data(tf))
    warmup = hvd.callbacks.LearningRateWarmupCallback(0.4, warmup_epochs=2, steps_per_epoch=2)
    schedule = hvd.callbacks.LearningRateScheduleCallback(0.4, multiplier=lambda epoch: 0.1 ** (epoch - 2), start_epoch=2)
    history = model.fit(x, y, batch_size=4, epochs=4, verbose=0, callbacks=[warmup, schedule, Recorder()])
    decay = hvd.callbacks.LearningRateScheduleCallback(0.4, multiplier=0.5, start_epoch=1)
    decayed = model.fit(x, y, batch_size=8, epochs=4, verbose=0, callbacks=[decay])
    return seen, *([round(rate, 6) for rate in each.history["lr"]] for each in (history, decayed))


def refusals():
    tf, hvd = _keras()
    model = _model(tf, tf.keras.optimizers.SGD(tf.keras.optimizers.schedules.ExponentialDecay(0.1, 10, 0.9)), seed=0)
    x, y = (tensor.numpy() for tensor in tensorflow_cases.data(tf))
    texts = []
    for callback in (hvd.callbacks.LearningRateWarmupCallback(0.1), hvd.callbacks.BestModelCheckpoint()):
        try:
            model.fit(x, y, verbose=0, callbacks=[callback])
            texts.append("nothing was raised")
        except ValueError as error:
            texts.append(str(error))
    return ["which callbacks cannot set" in texts[0], "set its `filepath` before" in texts[1]]


CASES = {
    fit_as_one_process: (True, True),
    what_is_broadcast: (False, True),
    averages_of_metrics: {"a": 0.5, "b": 1.5, "text": "kept", "array": [[1.0, 0.5]]},
    rates: ([0.25, 0.3, 0.35, 0.4, 0.4, 0.4, 0.04, 0.04], [0.3, 0.4, 0.4, 0.04], [0.04, 0.4, 0.2, 0.1]),
    refusals: [True, True],
}

test_every_case = tensorflow_cases.test(CASES)
