"""The convolutional network of the exercise, in a single process."""

import argparse
import time

import digits_data
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=5)
parser.add_argument("--batch-size", type=int, default=32)
parser.add_argument("--base-lr", type=float, default=0.001)
args = parser.parse_args()

(x_train, y_train), (x_test, y_test) = digits_data.load_data()
x_train, x_test = ((x[..., None] / 255.0).astype("float32") for x in (x_train, x_test))

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
model.compile(optimizer=tf.keras.optimizers.Adam(args.base_lr), loss="sparse_categorical_crossentropy", metrics=["accuracy"])

start = time.time()
model.fit(x_train, y_train, batch_size=args.batch_size, epochs=args.epochs, verbose=1)
print("Elapsed Time: {} ms".format(1000 * (time.time() - start)))

_, accuracy = model.evaluate(x_test, y_test, verbose=0)
print("Test accuracy: {:.4f}".format(accuracy))
