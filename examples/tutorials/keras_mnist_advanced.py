"""The container tutorial's example: as keras_mnist.py, with a warm-up, a schedule of the learning rate, shifted images, and the metrics of all
ranks averaged."""

import digits_data
import tensorflow as tf

import horovod.tensorflow.keras as hvd

hvd.init()

batch_size = 32
epochs = 8
num_classes = 10

(x_train, y_train), (x_test, y_test) = digits_data.load_data()
x_train = (x_train[..., None] / 255.0).astype("float32")
x_test = (x_test[..., None] / 255.0).astype("float32")
y_train = tf.keras.utils.to_categorical(y_train, num_classes)
y_test = tf.keras.utils.to_categorical(y_test, num_classes)

model = tf.keras.Sequential(
    [
        tf.keras.Input((8, 8, 1)),
        tf.keras.layers.RandomTranslation(0.08, 0.08),
        tf.keras.layers.Conv2D(32, (3, 3), activation="relu"),
        tf.keras.layers.Conv2D(64, (3, 3), activation="relu"),
        tf.keras.layers.MaxPooling2D((2, 2)),
        tf.keras.layers.Dropout(0.25),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(128, activation="relu"),
        tf.keras.layers.Dropout(0.5),
        tf.keras.layers.Dense(num_classes, activation="softmax"),
    ]
)

# Horovod: adjust learning rate based on number of GPUs.
scaled_lr = 0.001 * hvd.size()
opt = hvd.DistributedOptimizer(tf.keras.optimizers.Adam(scaled_lr))

model.compile(loss="categorical_crossentropy", optimizer=opt, metrics=["accuracy"], experimental_run_tf_function=False)

callbacks = [
    # Horovod: broadcast initial variable states from rank 0 to all other processes.
    hvd.callbacks.BroadcastGlobalVariablesCallback(0),
    # Horovod: average metrics among workers at the end of every epoch. Before the callbacks that depend on them.
    hvd.callbacks.MetricAverageCallback(),
    # Horovod: using `lr = 1.0 * hvd.size()` from the very beginning leads to worse final accuracy.
    hvd.callbacks.LearningRateWarmupCallback(initial_lr=scaled_lr, warmup_epochs=2, verbose=1),
    # Reduce the learning rate if training plateaues.
    tf.keras.callbacks.ReduceLROnPlateau(monitor="val_loss", patience=10, verbose=1),
]

# Horovod: save checkpoints only on worker 0 to prevent other workers from corrupting them.
if hvd.rank() == 0:
    callbacks.append(tf.keras.callbacks.ModelCheckpoint("./checkpoint-{epoch}.h5"))

# Train the model. The training will randomly sample 1 / N batches of training data and
# 3 / N batches of validation data on every worker, where N is the number of workers.
train = tf.data.Dataset.from_tensor_slices((x_train, y_train)).repeat().shuffle(2000, seed=hvd.rank()).batch(batch_size)
validation = tf.data.Dataset.from_tensor_slices((x_test, y_test)).repeat().batch(batch_size)
model.fit(
    train,
    steps_per_epoch=len(x_train) // batch_size // hvd.size(),
    callbacks=callbacks,
    epochs=epochs,
    verbose=2 if hvd.rank() == 0 else 0,
    validation_data=validation,
    validation_steps=3 * (len(x_test) // batch_size) // hvd.size(),
)

# Evaluate the model on the full data set.
score = model.evaluate(x_test, y_test, verbose=0)
print("Test loss:", score[0])
print("Test accuracy:", score[1])
