"""Trains a small convolutional network of Keras on scikit-learn's handwritten digits, on all ranks together:

    runjob -np 2 python examples/keras_digits.py

With PyTorch as Keras's backend: KERAS_BACKEND=torch runjob ...
"""

import keras
import numpy
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import runjob.keras as hvd

EPOCHS = 8


def main():
    hvd.init()
    keras.utils.set_random_seed(hvd.rank())
    images, labels = load_digits(return_X_y=True)
    images = (images / 16).astype("float32").reshape(-1, 8, 8, 1)
    x, x_test, y, y_test = train_test_split(images, labels, test_size=0.2, random_state=0)
    rows = len(x) // hvd.size()  # as many steps on every rank
    mine = numpy.arange(hvd.rank(), rows * hvd.size(), hvd.size())

    model = keras.Sequential(
        [
            keras.Input((8, 8, 1)),
            keras.layers.Conv2D(16, 3, activation="relu"),
            keras.layers.Flatten(),
            keras.layers.Dense(64, activation="relu"),
            keras.layers.Dense(10, activation="softmax"),
        ]
    )
    rate = 0.001 * hvd.size()
    optimizer = hvd.DistributedOptimizer(keras.optimizers.Adam(rate))
    model.compile(optimizer=optimizer, loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    callbacks = [
        hvd.callbacks.BroadcastGlobalVariablesCallback(0),
        hvd.callbacks.MetricAverageCallback(),
        hvd.callbacks.LearningRateWarmupCallback(rate, warmup_epochs=2, steps_per_epoch=rows // 32),
    ]
    if hvd.rank() == 0:
        print(f"training on {len(x)} images with {hvd.size()} ranks", flush=True)
    history = model.fit(x[mine], y[mine], batch_size=32, epochs=EPOCHS, callbacks=callbacks, verbose=0)
    _, accuracy = model.evaluate(x_test, y_test, verbose=0)
    if hvd.rank() == 0:
        for epoch, (loss, seen) in enumerate(zip(history.history["loss"], history.history["accuracy"]), 1):
            print(f"epoch {epoch}: loss {loss:.4f}, accuracy {seen:.4f}")
        print(f"test accuracy {accuracy:.4f}")


if __name__ == "__main__":
    main()
