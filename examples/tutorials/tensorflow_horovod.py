"""The scaling exercise with Keras: the batch of all ranks together stays as large as it is, however many there are."""

import time

import digits_data
import tensorflow as tf

# 1. Initializing Horovod
import horovod.tensorflow.keras as hvd

hvd.init()

# 2. Adapting the local batch to the desired global batch size and the number of workers
global_batch_size = 64
local_batch_size = global_batch_size // hvd.size()
epochs = 4

# 3. Pinning AI-accelerators to workers in a bijective way
gpus = tf.config.list_physical_devices("GPU")
if gpus:
    tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")

# 4. Creating data generators: a shard of the images for each worker
(x_train, y_train), (x_test, y_test) = digits_data.load_data()
shard = (
    tf.data.Dataset.from_tensor_slices(((x_train[..., None] / 255.0).astype("float32"), y_train))
    .shard(hvd.size(), hvd.rank())
    .shuffle(2000)
    .batch(local_batch_size, drop_remainder=True)
    .prefetch(tf.data.AUTOTUNE)
)
steps = len(x_train) // global_batch_size  # the same on every worker

# 5. Building the neural network
model = tf.keras.Sequential(
    [
        tf.keras.Input((8, 8, 1)),
        tf.keras.layers.Conv2D(32, 3, padding="same", activation="relu"),
        tf.keras.layers.Conv2D(32, 3, activation="relu"),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(10, activation="softmax"),
    ]
)
optimizer = hvd.DistributedOptimizer(tf.keras.optimizers.Adam(0.002))
model.compile(optimizer=optimizer, loss="sparse_categorical_crossentropy", metrics=["accuracy"])

# 6. Training it
start = time.time()
model.fit(
    shard.repeat(),
    steps_per_epoch=steps,
    epochs=epochs,
    callbacks=[hvd.callbacks.BroadcastGlobalVariablesCallback(0)],
    verbose=2,
)

# 7. Evaluating it (time & accuracy)
loss, accuracy = model.evaluate((x_test[..., None] / 255.0).astype("float32"), y_test, verbose=0)
print("Time: ", time.time() - start, " s")
print("Loss: ", loss, " accuracy: ", accuracy)
