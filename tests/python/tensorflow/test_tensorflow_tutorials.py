"""What the tutorials of Horovod do with TensorFlow and Keras, on digits in place of what they download: their statements, in their order."""

import warnings

import tensorflow_cases


def _digits(rank, size):
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    return (images / 16).astype("float32").reshape(-1, 8, 8, 1)[rank::size], labels[rank::size]


def keras_with_callbacks():
    """Scaled rate, wrapped optimizer, broadcast, averaged metrics, warm-up and schedule, a checkpoint on rank 0."""
    import pathlib
    import tempfile

    import tensorflow as tf

    import horovod.tensorflow.keras as hvd

    hvd.init()
    gpus = tf.config.experimental.list_physical_devices("GPU")
    if gpus:
        tf.config.experimental.set_visible_devices(gpus[hvd.local_rank()], "GPU")
    dataset = tf.data.Dataset.from_tensor_slices(_digits(hvd.rank(), hvd.size())).repeat().shuffle(1000).batch(64)
    mnist_model = tf.keras.Sequential(
        [
            tf.keras.layers.Conv2D(32, [3, 3], activation="relu"),
            tf.keras.layers.MaxPooling2D(pool_size=(2, 2)),
            tf.keras.layers.Dropout(0.25),
            tf.keras.layers.Flatten(),
            tf.keras.layers.Dense(64, activation="relu"),
            tf.keras.layers.Dense(10, activation="softmax"),
        ]
    )
    scaled_lr = 0.002 * hvd.size()
    opt = tf.optimizers.Adam(scaled_lr)
    opt = hvd.DistributedOptimizer(opt, backward_passes_per_step=1, average_aggregated_gradients=True)
    mnist_model.compile(
        loss=tf.losses.SparseCategoricalCrossentropy(), optimizer=opt, metrics=["accuracy"], experimental_run_tf_function=False
    )
    callbacks = [
        hvd.callbacks.BroadcastGlobalVariablesCallback(0),
        hvd.callbacks.MetricAverageCallback(),
        hvd.callbacks.LearningRateWarmupCallback(initial_lr=scaled_lr, warmup_epochs=2, verbose=1),
        hvd.callbacks.LearningRateScheduleCallback(initial_lr=scaled_lr, start_epoch=2, multiplier=lambda epoch: 0.8 ** (epoch - 2)),
    ]
    folder = pathlib.Path(tempfile.mkdtemp())
    if hvd.rank() == 0:
        callbacks.append(tf.keras.callbacks.ModelCheckpoint(str(folder / "checkpoint-{epoch}.weights.h5"), save_weights_only=True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        history = mnist_model.fit(dataset, steps_per_epoch=100 // hvd.size(), callbacks=callbacks, epochs=5, verbose=0)
    return history.history["accuracy"][-1] > 0.9, len(list(folder.glob("*.h5"))) == (5 if hvd.rank() == 0 else 0)


def custom_training():
    """A step of its own, with the broadcast in its first."""
    import tensorflow as tf

    import horovod.tensorflow as hvd

    hvd.init()
    dataset = tf.data.Dataset.from_tensor_slices(_digits(hvd.rank(), hvd.size())).repeat().shuffle(1000).batch(64)
    mnist_model = tf.keras.Sequential([tf.keras.layers.Flatten(), tf.keras.layers.Dense(10, activation="softmax")])
    loss = tf.losses.SparseCategoricalCrossentropy()
    opt = tf.optimizers.Adam(0.01 * hvd.size())

    @tf.function
    def training_step(images, labels, first_batch):
        with tf.GradientTape() as tape:
            probs = mnist_model(images, training=True)
            loss_value = loss(labels, probs)
        tape = hvd.DistributedGradientTape(tape)
        grads = tape.gradient(loss_value, mnist_model.trainable_variables)
        opt.apply_gradients(zip(grads, mnist_model.trainable_variables))
        if first_batch:
            hvd.broadcast_variables(mnist_model.variables, root_rank=0)
            hvd.broadcast_variables(opt.variables() if callable(opt.variables) else opt.variables, root_rank=0)
        return loss_value

    for batch, (images, labels) in enumerate(dataset.take(120 // hvd.size())):
        loss_value = training_step(images, labels, batch == 0)
    weights = hvd.allgather(tf.reshape(tf.convert_to_tensor(mnist_model.variables[0]), [1, -1]))
    return float(loss_value) < 0.7, bool(tf.reduce_all(weights[0] == weights[1]))


CASES = {keras_with_callbacks: (True, True), custom_training: (True, True)}

test_every_case = tensorflow_cases.test(CASES)
