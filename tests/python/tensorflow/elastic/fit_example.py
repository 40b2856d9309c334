"""A rank of an elastic job in the form of Horovod's example of Keras: fit() for one step before elastic.run() and in the reset callback,
the three callbacks of elastic training, and files of rank 0's.

    fit_example.py   process 1 kills itself in the second epoch

Each rank prints the numbers of ranks in all generations, the last epoch, and whether the learning rate is that of the last number.
"""

import os
import signal

import numpy as np
import tensorflow as tf

import horovod.tensorflow.keras as hvd

STEPS, EPOCHS, RATE = 8, 4, 0.001

hvd.init()

random = np.random.default_rng(hvd.rank())
dataset = tf.data.Dataset.from_tensor_slices((random.random((64, 8, 8, 1)).astype("float32"), random.integers(0, 10, 64)))
dataset = dataset.repeat().shuffle(100).batch(8)
model = tf.keras.Sequential(
    [
        tf.keras.layers.Conv2D(4, [3, 3], activation="relu"),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dropout(0.5),
        tf.keras.layers.Dense(10, activation="softmax"),
    ]
)
optimizer = hvd.DistributedOptimizer(tf.optimizers.Adam(RATE * hvd.size()), backward_passes_per_step=1, average_aggregated_gradients=True)
model.compile(
    loss=tf.losses.SparseCategoricalCrossentropy(), optimizer=optimizer, metrics=["accuracy"], experimental_run_tf_function=False
)
model.fit(dataset, steps_per_epoch=1, epochs=1, callbacks=None, verbose=0)
state = hvd.elastic.KerasState(model, batch=0, epoch=0, sizes=[hvd.size()])


def on_state_reset():
    state.model.optimizer.learning_rate.assign(RATE * hvd.size())
    state.sizes = [*state.sizes, hvd.size()]
    state.model.fit(dataset, steps_per_epoch=1, epochs=1, callbacks=None, verbose=0)


class Failure(tf.keras.callbacks.Callback):
    def on_train_batch_begin(self, batch, logs=None):
        if state.epoch == 1 and batch == 2 and os.environ["RUNJOB_PROCESS_NUMBER"] == "1":
            os.kill(os.getpid(), signal.SIGKILL)


state.register_reset_callbacks([on_state_reset])
callbacks = [
    hvd.elastic.UpdateEpochStateCallback(state),
    hvd.elastic.UpdateBatchStateCallback(state),
    hvd.elastic.CommitStateCallback(state),
    Failure(),
]
if hvd.rank() == 0:
    callbacks.append(tf.keras.callbacks.ModelCheckpoint("./checkpoint-{epoch}.keras"))


@hvd.elastic.run
def train(state):
    state.model.fit(dataset, steps_per_epoch=STEPS // hvd.size(), epochs=EPOCHS - state.epoch, callbacks=callbacks, verbose=0)


train(state)
is_rate = abs(float(model.optimizer.learning_rate.numpy()) - RATE * hvd.size()) < 1e-8
print(f"sizes {state.sizes}, epoch {state.epoch}, rate {is_rate}", flush=True)
