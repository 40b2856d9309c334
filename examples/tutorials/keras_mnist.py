"""The seven steps of the introduction, with a model and the digits where it leaves them open."""

# Step one: import horovod for the required framework
import digits_data
import tensorflow as tf

import horovod.tensorflow.keras as hvd

# Step two: initialize horovod
hvd.init()

# Step three: pin each GPU to a single process
gpus = tf.config.experimental.list_physical_devices("GPU")
for gpu in gpus:
    tf.config.experimental.set_memory_growth(gpu, True)
if gpus:
    tf.config.experimental.set_visible_devices(gpus[hvd.local_rank()], "GPU")

# Step four: import the data, build the model, and scale the learning
# rate to the number of GPUs

# Build model and dataset
(images, labels), (test_images, test_labels) = digits_data.load_data()
dataset = (
    tf.data.Dataset.from_tensor_slices(((images[..., None] / 255.0).astype("float32"), labels))
    .repeat()
    .shuffle(10000, seed=hvd.rank())
    .batch(64)
)
mnist_model = tf.keras.Sequential(
    [
        tf.keras.Input((8, 8, 1)),
        tf.keras.layers.Conv2D(32, [3, 3], activation="relu"),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(64, activation="relu"),
        tf.keras.layers.Dense(10, activation="softmax"),
    ]
)

# Scale learning rate to # of GPUs
scaled_lr = 0.001 * hvd.size()
opt = tf.optimizers.Adam(scaled_lr)

# Step five: Wrap the optimizer with a Horovod DistributedOptimizer
opt = hvd.DistributedOptimizer(opt)

# Step five: Ensure experimental_run_tf_function=False so that the
# DistributedOptimizer is used, and broadcast to ensure workers are
# initialized consistently

# Horovod: Specify `experimental_run_tf_function=False` to ensure
# TensorFlow uses hvd.DistributedOptimizer() to compute gradients.

mnist_model.compile(
    loss=tf.losses.SparseCategoricalCrossentropy(), optimizer=opt, metrics=["accuracy"], experimental_run_tf_function=False
)

# Horovod: broadcast initial variable states from rank 0 to all other
# processes.  This is necessary to ensure consistent initialization of
# all workers when training is started with random weights or restored
# from a checkpoint.

callbacks = [
    hvd.callbacks.BroadcastGlobalVariablesCallback(0),
]

# Step six: save checkpoints only on worker 0 to prevent corruption
if hvd.rank() == 0:
    callbacks.append(tf.keras.callbacks.ModelCheckpoint("./checkpoint-{epoch}.h5"))

# Step seven: Begin the training
mnist_model.fit(dataset, steps_per_epoch=500 // hvd.size(), callbacks=callbacks, epochs=2, verbose=1 if hvd.rank() == 0 else 0)

_, accuracy = mnist_model.evaluate((test_images[..., None] / 255.0).astype("float32"), test_labels, verbose=0)
if hvd.rank() == 0:
    print("Test accuracy: {:.4f}".format(accuracy))
