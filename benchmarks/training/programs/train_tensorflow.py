"""One rank of a training with TensorFlow, which takes its steps in turns with others.

    train_tensorflow.py LIBRARY MODEL SOCKET        LIBRARY: runjob, horovod, mwms, alone

MODEL    keras-cnn: model.compile() and model.fit(). tf-loop: a tf.function with a tf.GradientTape.
WORKERS  for mwms: the addresses of all ranks, with commas.
"""

from __future__ import annotations

import sys
import time

import tensorflow as tf
import tensorflow_libraries
import tensorflow_models
from turn_taking import take_turns

BATCH = 32
RATE = 0.001


class Fit:
    """Keras's own loop. A step is what lies between the ends of two batches."""

    batch = BATCH

    def __init__(self, library):
        tf.keras.utils.set_random_seed(1)
        with library.scope():
            model = tensorflow_models.cnn()
            loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
            model.compile(optimizer=library.optimizer(tf.keras.optimizers.SGD(RATE)), loss=loss)
        self.parameters = model.count_params()
        self._model, self._callbacks = model, library.callbacks()
        self._data = library.dataset(tensorflow_models.images(BATCH))

    def take(self, steps):
        ends = _Ends()
        self._model.fit(self._data, steps_per_epoch=steps, epochs=1, verbose=0, callbacks=[*self._callbacks, ends])
        return ends.seconds()


class _Ends(tf.keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self._times = []

    def on_epoch_begin(self, epoch, logs=None):
        self._times.append(time.perf_counter())

    def on_train_batch_end(self, batch, logs=None):
        self._times.append(time.perf_counter())

    def seconds(self):
        return [later - earlier for earlier, later in zip(self._times, self._times[1:])]


class Loop:
    """A loop of one's own around a compiled step."""

    batch = BATCH

    def __init__(self, library):
        with library.scope():
            model = tensorflow_models.Mlp()
            optimizer = tf.compat.v1.train.GradientDescentOptimizer(RATE)  # that of Keras 3 knows no strategies of several workers
        self.parameters = sum(variable.shape.num_elements() for variable in model.variables)
        self._batches = iter(library.dataset(tensorflow_models.images(BATCH)))

        def of_replica(images, labels):
            with tf.GradientTape() as tape:
                losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, model(images))
                loss = tf.reduce_mean(losses) * library.share_of_loss
            gradients = library.tape(tape).gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables))
            return loss

        @tf.function
        def step(images, labels):
            return library.run(of_replica, (images, labels))

        self._step = step
        library.begin(model.variables)

    def take(self, steps):
        times = [time.perf_counter()]
        for _ in range(steps):
            float(self._step(*next(self._batches)))
            times.append(time.perf_counter())
        return [later - earlier for earlier, later in zip(times, times[1:])]


MODELS = {"keras-cnn": Fit, "tf-loop": Loop}


def main():
    name, model, path = sys.argv[1:]
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    library = tensorflow_libraries.LIBRARIES[name]()
    take_turns(path, library.rank, MODELS[model](library), f"TensorFlow {tf.__version__}")


main()
