"""The exercise's solution: the steps of the tutorial applied to SVHN_class.py."""

import argparse
import time

import digits_data
import tensorflow as tf

import horovod.tensorflow.keras as hvd

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=5)
parser.add_argument("--batch-size", type=int, default=32)
parser.add_argument("--base-lr", type=float, default=0.001)
parser.add_argument("--warmup-epochs", type=float, default=2)
args = parser.parse_args()

# Step 1: initialize Horovod
hvd.init()

# Step 2: pin to a GPU
gpus = tf.config.list_physical_devices("GPU")
if gpus:
    tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")

# Step 3: only the root worker is verbose
verbose = 1 if hvd.rank() == 0 else 0

(x_train, y_train), (x_test, y_test) = digits_data.load_data()
x_train, x_test = ((x[..., None] / 255.0).astype("float32") for x in (x_train, x_test))
dataset = (
    tf.data.Dataset.from_tensor_slices((x_train, y_train)).repeat().shuffle(len(x_train), seed=hvd.rank()).batch(args.batch_size)
)

model = tf.keras.Sequential(
    [
        tf.keras.Input((8, 8, 1)),
        tf.keras.layers.Conv2D(16, 3, activation="relu"),
        tf.keras.layers.Conv2D(32, 3, activation="relu"),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(64, activation="relu"),
        tf.keras.layers.Dense(10, activation="softmax"),
    ]
)

# Step 9: scale the learning rate by the number of workers; step 4: wrap the optimizer
scaled_lr = args.base_lr * hvd.size()
opt = hvd.DistributedOptimizer(tf.keras.optimizers.Adam(scaled_lr))
model.compile(optimizer=opt, loss="sparse_categorical_crossentropy", metrics=["accuracy"], experimental_run_tf_function=False)

callbacks = [
    hvd.callbacks.BroadcastGlobalVariablesCallback(0),  # step 5
    hvd.callbacks.MetricAverageCallback(),  # step 7
    hvd.callbacks.LearningRateWarmupCallback(initial_lr=scaled_lr, warmup_epochs=args.warmup_epochs, verbose=verbose),  # step 10
]
if hvd.rank() == 0:  # step 8
    callbacks.append(tf.keras.callbacks.ModelCheckpoint("./checkpoint-{epoch}.keras"))

start = time.time()
model.fit(
    dataset,
    steps_per_epoch=len(x_train) // args.batch_size // hvd.size(),  # step 6
    epochs=args.epochs,
    callbacks=callbacks,
    verbose=verbose,
)

_, accuracy = model.evaluate(x_test, y_test, verbose=0)
if hvd.rank() == 0:
    print("Elapsed Time: {} ms".format(1000 * (time.time() - start)))
    print("Test accuracy: {:.4f}".format(accuracy))
