"""A rank of an elastic job in the form of Horovod's example of TensorFlow 2: a loop of its own, one step without an allreduce before
elastic.run() that makes the variables, and a reset callback for the learning rate.

    loop_example.py STEPS [HOSTS]   process 1 kills itself at batch 12

With HOSTS it adds 127.0.0.3:1 to this file before, and the others train until the job has two ranks again.

Each rank prints the numbers of ranks in all generations, the last batch, and whether the learning rate is that of the last number.
"""

import os
import pathlib
import signal
import sys
import time

import numpy as np
import tensorflow as tf

import horovod.tensorflow as hvd

STEPS, RATE = int(sys.argv[1]), 0.001
HOSTS = pathlib.Path(sys.argv[2]) if sys.argv[2:] else None

hvd.init()

random = np.random.default_rng(hvd.rank())
dataset = tf.data.Dataset.from_tensor_slices((random.random((64, 8, 8, 1)).astype("float32"), random.integers(0, 10, 64)))
dataset = dataset.repeat().shuffle(100).batch(8)
model = tf.keras.Sequential(
    [
        tf.keras.layers.Conv2D(4, [3, 3], activation="relu"),
        tf.keras.layers.MaxPooling2D(pool_size=(2, 2)),
        tf.keras.layers.Dropout(0.25),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(10, activation="softmax"),
    ]
)
loss = tf.losses.SparseCategoricalCrossentropy()
optimizer = tf.optimizers.Adam(RATE * hvd.size())


@tf.function
def training_step(images, labels, allreduce=True):
    with tf.GradientTape() as tape:
        value = loss(labels, model(images, training=True))
    if allreduce:
        tape = hvd.DistributedGradientTape(tape)
    optimizer.apply_gradients(zip(tape.gradient(value, model.trainable_variables), model.trainable_variables))
    return value


for images, labels in dataset.take(1):
    training_step(images, labels, allreduce=False)


@hvd.elastic.run
def train(state):
    first = state.batch
    steps = 100000 if HOSTS else STEPS // hvd.size()
    for index, (images, labels) in enumerate(dataset.skip(state.batch).take(steps)):
        state.batch = first + index
        if state.batch == 12 and os.environ["RUNJOB_PROCESS_NUMBER"] == "1":
            if HOSTS:
                HOSTS.write_text(HOSTS.read_text() + "127.0.0.3:1\n")
            os.kill(os.getpid(), signal.SIGKILL)
        training_step(images, labels)
        state.commit()
        if HOSTS:
            time.sleep(0.01)
            if hvd.size() == 2 and len(state.sizes) > 1 and index >= 20:
                return


def on_state_reset():
    optimizer.learning_rate.assign(RATE * hvd.size())
    state.sizes = [*state.sizes, hvd.size()]


state = hvd.elastic.TensorFlowKerasState(model, optimizer, batch=0, sizes=[hvd.size()])
state.register_reset_callbacks([on_state_reset])
train(state)

if hvd.rank() == 0:
    tf.train.Checkpoint(model=model, optimizer=optimizer).save("./checkpoints")
is_rate = abs(float(optimizer.learning_rate.numpy()) - RATE * hvd.size()) < 1e-8
print(f"sizes {state.sizes}, batch {state.batch}, rate {is_rate}", flush=True)
