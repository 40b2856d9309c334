"""A rank of an elastic job that trains in the idiom of Horovod's Keras scripts, with Keras's backend of KERAS_BACKEND.

    keras_training.py NUMBER [grow|shrink]   the process with this number is killed in the second epoch, after its third batch

With `grow` it trains until that process is replaced, and with `shrink` until the job has two ranks, at most for 1000 epochs, else for four.
With `shrink` each process prints "mark" in its second epoch.

Each rank prints size, epoch, batch, how many steps the optimizer has made, and whether all ranks have the same variables, bit for bit.
"""

import os
import signal
import sys
import time

import keras
import numpy as np

import horovod.keras as hvd

STEPS, BATCH = 6, 4
WANTED = {"grow": 3, "shrink": 2}.get(sys.argv[2]) if sys.argv[2:] else None  # the number of ranks with which it ends
EPOCHS = 1000 if WANTED else 4

hvd.init()
keras.utils.set_random_seed(int(os.environ["RUNJOB_PROCESS_NUMBER"]))
random = np.random.default_rng(hvd.rank())
x = random.normal(size=(STEPS * BATCH, 3)).astype("float32")
y = x.sum(axis=1, keepdims=True)
model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(4, activation="tanh"), keras.layers.Dropout(0.2), keras.layers.Dense(1)])
optimizer = hvd.DistributedOptimizer(keras.optimizers.Adam(0.01 * hvd.size()))
model.compile(optimizer=optimizer, loss="mse")


class Failure(keras.callbacks.Callback):
    batches = 0

    def on_train_batch_begin(self, batch, logs=None):
        Failure.batches += 1
        if WANTED == 2 and Failure.batches == STEPS + 1:
            print("mark", flush=True)
        if Failure.batches == STEPS + 4 and os.environ["RUNJOB_PROCESS_NUMBER"] == sys.argv[1]:
            os.kill(os.getpid(), signal.SIGKILL)

    def on_train_batch_end(self, batch, logs=None):
        time.sleep(0.02 if WANTED else 0)

    def on_epoch_end(self, epoch, logs=None):
        self.model.stop_training = hvd.size() == WANTED and state.epoch >= 4


def on_reset():
    model.optimizer.learning_rate = 0.01 * hvd.size()


state = hvd.elastic.KerasState(model, batch=0, epoch=0)
state.register_reset_callbacks([on_reset])
callbacks = [
    hvd.elastic.CommitStateCallback(state, batches_per_commit=2),
    hvd.elastic.UpdateBatchStateCallback(state),
    hvd.elastic.UpdateEpochStateCallback(state),
    Failure(),
]


@hvd.elastic.run
def train(state):
    model.fit(x, y, batch_size=BATCH, epochs=EPOCHS - state.epoch, callbacks=callbacks, verbose=0, shuffle=False)


train(state)
flat = np.concatenate([np.ravel(each.numpy()).astype("float64") for each in [*model.weights, *optimizer.variables]])
is_equal = np.array_equal(flat, hvd.broadcast(flat, root_rank=0))
assert abs(float(model.optimizer.learning_rate.numpy()) - 0.01 * hvd.size()) < 1e-6
epochs = "all" if WANTED else state.epoch
assert int(optimizer.iterations.numpy()) == STEPS * state.epoch
print(f"size {hvd.size()}, epochs {epochs}, batch {state.batch}, steps {'all' if WANTED else int(optimizer.iterations.numpy())}, equal {is_equal}", flush=True)
