"""python/runjob/tensorflow/keras/models.py: what is saved on rank 0 goes on on all ranks, and without us."""

import pathlib
import tempfile

import tensorflow_cases


def saved_and_loaded():
    import tensorflow as tf

    import runjob.tensorflow.keras as hvd

    x, y = (tensor.numpy() for tensor in tensorflow_cases.data(tf, hvd.rank()))
    model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(2)])
    model.compile(optimizer=hvd.DistributedOptimizer(tf.keras.optimizers.Adam(0.05)), loss="mse")
    model.fit(x, y, batch_size=4, epochs=2, verbose=0, callbacks=[hvd.callbacks.BroadcastGlobalVariablesCallback(0)])
    ending = ".keras" if tensorflow_cases.is_keras_3() else ".h5"
    path = pathlib.Path(hvd.broadcast_object(tempfile.mkdtemp(), 0)) / f"model{ending}"
    if hvd.rank() == 0:
        model.save(path)
    hvd.allreduce(0.0, name="saved")
    plain = tf.keras.models.load_model(path)
    loaded = hvd.load_model(path)
    found = [
        type(plain.optimizer) is tf.keras.optimizers.Adam,
        int(tf.convert_to_tensor(plain.optimizer.iterations)) == int(tf.convert_to_tensor(loaded.optimizer.iterations)) == 2,
        isinstance(loaded.optimizer, tf.keras.optimizers.Adam) and type(loaded.optimizer) is not type(plain.optimizer),
    ]
    loaded.fit(x, y, batch_size=4, epochs=1, verbose=0)
    weights = hvd.allgather(tf.reshape(tf.constant(loaded.get_weights()[0]), [1, -1]))
    return [*found, bool((weights[0] == weights[1]).all())]


CASES = {saved_and_loaded: [True] * 4}

test_every_case = tensorflow_cases.test(CASES)
