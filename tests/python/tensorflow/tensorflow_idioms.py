"""What scripts written for Horovod do with TensorFlow and Keras, on one rank of a job: each idiom in the words of those scripts.

    LAUNCHER -np 2 python tensorflow_idioms.py

Prints "rank R of S: N idioms", and ends with an error at the first one that fails.
"""

import importlib.util
import pathlib
import tempfile

import tensorflow as tf

import horovod
import horovod.keras
import horovod.tensorflow as hvd
import horovod.tensorflow.keras as hvd_keras
from horovod.runner.common.util import env

IDIOMS = []


def idiom(function):
    IDIOMS.append(function)
    return function


def same_everywhere(values):
    """Whether all ranks have the same."""
    flat = tf.concat([tf.reshape(tf.cast(tf.convert_to_tensor(value), tf.float64), [1, -1]) for value in values], 1)
    gathered = hvd.allgather(flat)
    return bool(tf.reduce_all(gathered == gathered[:1]))


def digits():
    random = tf.random.Generator.from_seed(hvd.rank())
    return random.uniform([64, 8, 8, 1]), random.uniform([64], maxval=10, dtype=tf.int64)


def network():
    return tf.keras.Sequential(
        [tf.keras.layers.Conv2D(4, [3, 3], activation="relu"), tf.keras.layers.Flatten(), tf.keras.layers.Dense(10, activation="softmax")]
    )


@idiom
def one_gpu_for_each_rank():
    gpus = tf.config.experimental.list_physical_devices("GPU")
    for gpu in gpus:
        tf.config.experimental.set_memory_growth(gpu, True)
    if gpus:
        tf.config.experimental.set_visible_devices(gpus[hvd.local_rank()], "GPU")
    assert hvd.local_rank() < hvd.local_size() <= hvd.size()


@idiom
def the_launchers_rank():
    assert env.get_env_rank_and_size() == (hvd.rank(), hvd.size())
    assert horovod.__version__ == "0.28.1" and hvd.gloo_built() and isinstance(hvd.nccl_built(), int)


@idiom
def a_loop_that_asks_for_the_optimizers_variables():
    """With the state of the model and of the optimizer sent from rank 0 in the first step, and a checkpoint of both on rank 0."""
    model, loss_of, opt = network(), tf.losses.SparseCategoricalCrossentropy(), tf.optimizers.Adam(0.001 * hvd.size())
    checkpoint = tf.train.Checkpoint(model=model, optimizer=opt)

    @tf.function
    def training_step(images, labels, first_batch):
        with tf.GradientTape() as tape:
            loss = loss_of(labels, model(images, training=True))
        tape = hvd.DistributedGradientTape(tape, compression=hvd.Compression.fp16)
        opt.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        if first_batch:
            hvd.broadcast_variables(model.variables, root_rank=0)
            hvd.broadcast_variables(opt.variables(), root_rank=0)
        return loss

    dataset = tf.data.Dataset.from_tensor_slices(digits()).repeat().shuffle(64).batch(16)
    for batch, (images, labels) in enumerate(dataset.take(10 // hvd.size())):
        training_step(images, labels, batch == 0)
    assert same_everywhere([*model.variables, *opt.variables()])
    if hvd.rank() == 0:
        assert checkpoint.save(tempfile.mkdtemp() + "/checkpoint")


@idiom
def a_model_that_fit_trains():
    """As Keras 2's scripts compile it, with all callbacks; rank 0 saves."""
    model, rate, folder = network(), 0.001 * hvd.size(), tempfile.mkdtemp()
    opt = hvd_keras.DistributedOptimizer(tf.optimizers.Adam(rate), backward_passes_per_step=1, average_aggregated_gradients=True)
    model.compile(
        loss=tf.losses.SparseCategoricalCrossentropy(), optimizer=opt, metrics=["accuracy"], experimental_run_tf_function=False
    )
    callbacks = [
        hvd_keras.callbacks.BroadcastGlobalVariablesCallback(0), hvd_keras.callbacks.MetricAverageCallback(),
        hvd_keras.callbacks.LearningRateWarmupCallback(initial_lr=rate, warmup_epochs=2, verbose=1),
    ]  # fmt: skip
    if hvd.rank() == 0:
        callbacks.append(tf.keras.callbacks.ModelCheckpoint(folder + "/checkpoint-{epoch}.h5"))
    dataset = tf.data.Dataset.from_tensor_slices(digits()).repeat().batch(16)
    model.fit(dataset, steps_per_epoch=4 // hvd.size(), callbacks=callbacks, epochs=2, verbose=0)
    assert same_everywhere([*model.variables, *opt.variables()])
    saved = sorted(path.name for path in pathlib.Path(folder).iterdir())
    assert saved == (["checkpoint-1.h5", "checkpoint-2.h5"] if hvd.rank() == 0 else [])


@idiom
def positional_arguments_of_horovod_keras():
    opt = horovod.keras.DistributedOptimizer(tf.optimizers.SGD(0.1), None, "", "", hvd.Compression.none, False, 1.0, hvd.Average, 0, 2)
    kernel = tf.Variable([1.0 + hvd.rank()])
    opt.apply_gradients([(tf.constant([2.0 * hvd.rank()]), kernel)])
    assert abs(float(kernel[0]) - (1.0 + hvd.rank() - 0.1 * (hvd.size() - 1))) < 1e-5
    assert horovod.keras.callbacks.BestModelCheckpoint("loss", 1, "min").save_weights_only is False


@idiom
def variables_and_objects_of_rank_0():
    variable = tf.Variable([float(hvd.rank())])
    (returned,) = hvd.broadcast_([variable], 0)
    assert returned is variable and float(variable[0]) == 0.0
    assert hvd.broadcast_object({"epoch": hvd.rank()}, root_rank=0) == {"epoch": 0}
    assert hvd.allgather_object(hvd.rank()) == list(range(hvd.size()))
    assert hvd_keras.allreduce(float(hvd.rank()), op=hvd.Sum) == sum(range(hvd.size()))


@idiom
def sums_by_the_names_that_horovod_keeps_for_itself():
    """As layers for batch normalization and compressors of gradients add up, eagerly and in functions."""
    from horovod.tensorflow import _allreduce
    from horovod.tensorflow.util import _make_subgraph

    own = tf.constant([1.0, float(hvd.rank())])
    assert _allreduce(own, name="own_sum").numpy().tolist() == [hvd.size(), sum(range(hvd.size()))]
    assert hvd.mpi_ops._allreduce(own, op=hvd.Max).numpy().tolist() == [1.0, hvd.size() - 1]
    first, second = hvd.mpi_ops._grouped_allreduce([own, own[:1]], postscale_factor=0.5)
    assert (float(first[0]), float(second[0])) == (hvd.size() / 2, hvd.size() / 2)
    mean = _make_subgraph(lambda x: _allreduce(x) / tf.cast(hvd.size(), x.dtype))
    assert mean(own).numpy().tolist() == [1.0, sum(range(hvd.size())) / hvd.size()]
    assert hvd.mpi_ops._normalize_name("dense/kernel:0") == "dense_kernel_0"
    assert hvd.handle_average_backwards_compatibility(hvd.Sum, None) == hvd.Sum


@idiom
def a_tape_of_some_ranks():
    last = hvd.add_process_set([hvd.size() - 1])
    variable = tf.Variable(3.0)
    with hvd.DistributedGradientTape(tf.GradientTape(), process_set=last) as tape:
        loss = variable * float(hvd.rank())
    assert float(tape.gradient(loss, variable)) == hvd.rank()
    assert hvd.remove_process_set(last)


@idiom
def modules_that_are_not_there():
    for name in ("horovod.spark", "horovod.tensorflow.data", "horovod.tensorflow.gradient_aggregation"):
        assert importlib.util.find_spec(name) is None
    try:
        import horovod.tensorflow.data.compute_service  # noqa: F401
    except ModuleNotFoundError as error:
        assert "tf.data.experimental.service" in str(error)


def main():
    hvd.init(process_sets="dynamic")
    for function in IDIOMS:
        function()
    print(f"rank {hvd.rank()} of {hvd.size()}: {len(IDIOMS)} idioms", flush=True)
    hvd.shutdown()


if __name__ == "__main__":
    main()
