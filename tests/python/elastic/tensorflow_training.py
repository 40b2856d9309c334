"""A rank of an elastic job that trains in the idiom of Horovod's TensorFlow scripts, until process 1 was lost and replaced.

    tensorflow_training.py keras|variables   which state it has

Each rank prints size, step, and whether all ranks have the same variables, bit for bit.
"""

import os
import signal
import sys
import time

import numpy as np
import tensorflow as tf

import horovod.tensorflow as hvd

STEPS = 30

hvd.init()
tf.random.set_seed(int(os.environ["RUNJOB_PROCESS_NUMBER"]))
model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(4, activation="tanh"), tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.Adam(0.01)
optimizer.build(model.trainable_variables)
inner = [each if isinstance(each, tf.Variable) else each.value for each in [*model.variables, *optimizer.variables]]


@tf.function
def training_step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x, training=True) - 1.0))
    tape = hvd.DistributedGradientTape(tape)
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    return loss


@hvd.elastic.run
def train(state):
    while state.step < STEPS:
        if state.step == 7 and os.environ["RUNJOB_PROCESS_NUMBER"] == "1":
            os.kill(os.getpid(), signal.SIGKILL)
        training_step(tf.fill((2, 3), float(hvd.rank() + state.step)))
        time.sleep(0.01)
        if state.step < STEPS - 1 or hvd.size() == 3:
            state.step += 1
        state.commit()


if sys.argv[1] == "keras":
    state = hvd.elastic.TensorFlowKerasState(model, optimizer, step=0)
else:
    state = hvd.elastic.TensorFlowState(variables=inner, step=0)
train(state)
flat = np.concatenate([np.ravel(each.numpy()).astype("float64") for each in inner])
is_equal = np.array_equal(flat, hvd.broadcast(flat, root_rank=0).numpy())
print(f"size {hvd.size()}, step {state.step}, equal {is_equal}", flush=True)
