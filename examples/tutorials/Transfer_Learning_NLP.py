"""The base model of the text tutorial, in a single process. Its text and its first layer are what differs: they would be downloads."""

import argparse
import os
import pathlib
import shutil
import tempfile
import time

# Suppress tensorflow logging
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"

import pandas as pd
import tensorflow as tf
import text_data
from sklearn.model_selection import train_test_split

print("Version: ", tf.__version__)
print("GPU is", "available" if tf.config.list_physical_devices("GPU") else "NOT AVAILABLE")
print("Number of GPUs :", len(tf.config.list_physical_devices("GPU")))

logdir = pathlib.Path(tempfile.mkdtemp()) / "tensorboard_logs"
shutil.rmtree(logdir, ignore_errors=True)

# Parse input arguments

parser = argparse.ArgumentParser(description="Transfer Learning Example", formatter_class=argparse.ArgumentDefaultsHelpFormatter)

parser.add_argument("--log-dir", default=logdir, help="tensorboard log directory")

parser.add_argument("--batch-size", type=int, default=32, help="input batch size for training")

parser.add_argument("--epochs", type=int, default=10, help="number of epochs to train")

parser.add_argument("--base-lr", type=float, default=0.01, help="learning rate for a single GPU")

parser.add_argument("--patience", type=float, default=2, help="Number of epochs that meet target before stopping")

parser.add_argument("--use-checkpointing", default=False, action="store_true")

args = parser.parse_args()

# Steps

if os.path.exists("dataset.pkl"):
    df = pd.read_pickle("dataset.pkl")
else:
    df = text_data.sentences()
    df.to_pickle("dataset.pkl")

train_df, remaining = train_test_split(df, random_state=42, train_size=0.5, stratify=df.target.values)
valid_df, _ = train_test_split(remaining, random_state=42, train_size=0.8, stratify=remaining.target.values)
print("The shape of training {} and validation {} datasets.".format(train_df.shape, valid_df.shape))
print("##-------------------------##")

buffer_size = train_df.size
train_dataset = (
    tf.data.Dataset.from_tensor_slices((train_df.question_text.values, train_df.target.values))
    .shuffle(buffer_size)
    .batch(args.batch_size)
)
valid_dataset = tf.data.Dataset.from_tensor_slices((valid_df.question_text.values, valid_df.target.values)).batch(args.batch_size)

embeding_size = 128
name_of_model = "lsa-dim128"

print("Batch size :", args.batch_size)

callbacks = []
if args.use_checkpointing:
    callbacks.append(tf.keras.callbacks.EarlyStopping(monitor="val_loss", patience=args.patience, mode="min"))
    callbacks.append(tf.keras.callbacks.TensorBoard(logdir / name_of_model))


def train_and_evaluate_model_ds(embed_size):
    model = tf.keras.models.Sequential(
        [
            *text_data.layers(train_df.question_text.values, embed_size),
            tf.keras.layers.Dense(256, activation="relu"),
            tf.keras.layers.Dense(64, activation="relu"),
            tf.keras.layers.Dense(1, activation="sigmoid"),
        ]
    )

    model.compile(
        optimizer=tf.keras.optimizers.Adam(learning_rate=args.base_lr),
        loss=tf.losses.BinaryCrossentropy(),
        metrics=[tf.metrics.BinaryAccuracy(name="accuracy")],
    )

    history = model.fit(train_dataset, epochs=args.epochs, validation_data=valid_dataset, callbacks=callbacks, verbose=1)
    return history


start = time.time()
print("\n##-------------------------##")
print("Training starts ...")
history = train_and_evaluate_model_ds(embed_size=embeding_size)
endt = time.time() - start
print("Elapsed Time: {} ms".format(1000 * endt))
print("Validation accuracy: {:.4f}".format(history.history["val_accuracy"][-1]))
print("##-------------------------##")
