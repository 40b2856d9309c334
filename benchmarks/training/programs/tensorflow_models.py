"""The networks that TensorFlow trains, each with a batch to train it on: random data, the same in every run."""

from __future__ import annotations

import numpy
import tensorflow as tf

_WIDTHS = (3072, 2048, 2048, 2048, 1024, 10)


def cnn() -> tf.keras.Model:
    """Keras's, for images of 32 x 32: 0.6 million parameters in 12 tensors, with much to compute for each of them."""
    layers = tf.keras.layers
    return tf.keras.Sequential(
        [
            tf.keras.Input((32, 32, 3)),
            layers.Conv2D(32, 3, padding="same", activation="relu"),
            layers.Conv2D(32, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(64, 3, padding="same", activation="relu"),
            layers.Conv2D(64, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(128, activation="relu"),
            layers.Dense(10),
        ]
    )


class Mlp(tf.Module):
    """17 million parameters in 10 tensors, with little to compute for each of them: the same as PyTorch's `mlp`, without Keras."""

    def __init__(self) -> None:
        super().__init__()
        random = numpy.random.default_rng(1)
        shapes = list(zip(_WIDTHS, _WIDTHS[1:]))
        self.kernels = [tf.Variable(random.standard_normal(shape, numpy.float32) / shape[0] ** 0.5) for shape in shapes]
        self.biases = [tf.Variable(tf.zeros(columns)) for _, columns in shapes]

    def __call__(self, images: tf.Tensor) -> tf.Tensor:
        x = tf.reshape(images, [-1, _WIDTHS[0]])
        for kernel, bias in zip(self.kernels[:-1], self.biases[:-1]):
            x = tf.nn.relu(x @ kernel + bias)
        return x @ self.kernels[-1] + self.biases[-1]


def images(batch: int) -> tuple[numpy.ndarray, numpy.ndarray]:
    random = numpy.random.default_rng(2)
    return random.standard_normal((batch, 32, 32, 3), numpy.float32), random.integers(0, 10, batch)
