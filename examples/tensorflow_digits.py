"""Trains a small network on scikit-learn's handwritten digits with a loop of its own, on all ranks together:

    runjob -np 2 python examples/tensorflow_digits.py
"""

import tensorflow as tf
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import runjob.tensorflow as hvd

EPOCHS = 10
BATCH = 32


def main():
    hvd.init()
    images, labels = load_digits(return_X_y=True)
    x, x_test, y, y_test = train_test_split((images / 16).astype("float32"), labels, test_size=0.2, random_state=0)
    data = tf.data.Dataset.from_tensor_slices((x, y)).shard(hvd.size(), hvd.rank())
    steps = len(x) // hvd.size() // BATCH  # as many on every rank
    data = data.shuffle(2000, seed=1).batch(BATCH).take(steps)

    model = tf.keras.Sequential([tf.keras.Input((64,)), tf.keras.layers.Dense(64, activation="relu"), tf.keras.layers.Dense(10)])
    optimizer = tf.keras.optimizers.Adam(0.002 * hvd.size())
    loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tf.function
    def step(batch, expected):
        with tf.GradientTape() as tape:
            loss = loss_of(expected, model(batch, training=True))
        tape = hvd.DistributedGradientTape(tape)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    if hvd.rank() == 0:
        print(f"training on {len(x)} images with {hvd.size()} ranks")
    is_first = True
    for epoch in range(1, EPOCHS + 1):
        for batch, expected in data:
            loss = step(batch, expected)
            if is_first:  # when the optimizer has its variables, too
                hvd.broadcast_variables([*model.variables, *optimizer.variables()], root_rank=0)
                is_first = False
        mean = hvd.allreduce(loss, name="loss")
        guesses = tf.argmax(model(x_test), axis=1).numpy()
        if hvd.rank() == 0:
            print(f"epoch {epoch:2d}: loss {float(mean):.4f}, test accuracy {(guesses == y_test).mean():.4f}")


if __name__ == "__main__":
    main()
