"""runjob.keras where Keras's backend is PyTorch, and python/runjob/keras_callbacks.py: models that fit() trains on two ranks."""

import functools
import importlib.util
import os
import pathlib
import sys
import tempfile
import warnings

import numpy
import pytest

import cases

pytestmark = pytest.mark.skipif(importlib.util.find_spec("keras") is None, reason="no Keras here: pip install keras")


def _modules():
    os.environ["KERAS_BACKEND"] = "torch"
    import keras

    import runjob.keras as hvd

    return keras, hvd


def _data(rank=None):
    """Eight rows with three columns; those of a rank, or all."""
    random = numpy.random.default_rng(1)
    x, y = random.normal(size=(8, 3)).astype("float32"), random.normal(size=(8, 2)).astype("float32")
    rows = slice(None) if rank is None else slice(4 * rank, 4 * rank + 4)
    return x[rows], y[rows]


def _model(keras, optimizer, seed):
    keras.utils.set_random_seed(seed)
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(4, activation="tanh"), keras.layers.Dense(2)])
    model.compile(optimizer=optimizer, loss="mse")
    return model


def _is_close(model, other):
    return all(numpy.allclose(a, b, rtol=1e-4, atol=1e-5) for a, b in zip(model.get_weights(), other.get_weights(), strict=True))


def _is_alike(hvd, value):
    values = hvd.allgather(numpy.asarray(value, "float64").reshape(1, -1))
    return bool((values[0] == values[1]).all())


def _alone(keras, epochs, batch_size=8, factor=1.0):
    """One process with all rows."""
    model = _model(keras, keras.optimizers.SGD(0.05 * factor, momentum=0.9), seed=0)
    return model, model.fit(*_data(), batch_size=batch_size, epochs=epochs, verbose=0, shuffle=False)


def fit_as_one_process():
    """The ranks begin with other weights, have half of the data each, and end with what one process comes to that has all."""
    keras, hvd = _modules()
    model = _model(keras, hvd.DistributedOptimizer(keras.optimizers.SGD(0.0, momentum=0.9)), seed=hvd.rank())
    # A first batch that changes nothing, since the broadcast comes after it.
    model.fit(*_data(hvd.rank()), batch_size=4, verbose=0, callbacks=[hvd.callbacks.BroadcastGlobalVariablesCallback(0)])
    for variable in model.optimizer.variables:
        if "momentum" in variable.path:
            variable.assign(numpy.zeros(variable.shape))
    model.optimizer.learning_rate = 0.05
    average = hvd.callbacks.MetricAverageCallback()
    history = model.fit(*_data(hvd.rank()), batch_size=4, epochs=5, verbose=0, shuffle=False, callbacks=[average])
    alone, expected = _alone(keras, 5)
    return _is_close(model, alone), bool(numpy.allclose(history.history["loss"], expected.history["loss"], rtol=1e-4))


def compiled():
    """model.compile(jit_compile=True): the reduction stays outside of what torch.compile() makes of a step.

    TorchDynamo decides what that is. The default backend would then build C++ for each part, which takes long and shows nothing more."""
    keras, hvd = _modules()
    import torch

    default = torch.compile
    torch.compile = functools.partial(torch.compile, backend="eager")
    model = _model(keras, hvd.DistributedOptimizer(keras.optimizers.SGD(0.05, momentum=0.9)), seed=0)
    model.compile(optimizer=model.optimizer, loss="mse", jit_compile=True)
    try:
        model.fit(*_data(hvd.rank()), batch_size=4, epochs=3, verbose=0, shuffle=False)
    finally:
        torch.compile = default
    alone, _ = _alone(keras, 3)
    return model.jit_compile, _is_close(model, alone)


def several_passes():
    """Two batches for a step, their gradients averaged: as one process with all rows again."""
    keras, hvd = _modules()
    options = {"backward_passes_per_step": 2, "average_aggregated_gradients": True, "groups": 2}
    model = _model(keras, hvd.DistributedOptimizer(keras.optimizers.SGD(0.05, momentum=0.9), **options), seed=0)
    model.fit(*_data(hvd.rank()), batch_size=2, epochs=3, verbose=0, shuffle=False)
    return _is_close(model, _alone(keras, 3)[0]), int(model.optimizer.iterations.numpy())


def lists_in_turn():
    """Each of two lists of variables has passes of its own."""
    keras, hvd = _modules()
    optimizer = hvd.DistributedOptimizer(keras.optimizers.SGD(1.0), backward_passes_per_step=2)
    one, other = keras.Variable([0.0]), keras.Variable([0.0])
    optimizer.build([one, other])
    for _ in range(2):
        for gradient, variable in ((1.0, one), (10.0, other)):
            optimizer.apply([keras.ops.convert_to_tensor([gradient])], [variable])
    return float(one.numpy()[0]), float(other.numpy()[0])


def scales_of_losses():
    """A gradient that overflows on one rank keeps all ranks from a step, and they go on with the same scale."""
    keras, hvd = _modules()
    x, y = numpy.ones((4, 3), "float32"), numpy.ones((4, 2), "float32")
    if hvd.rank() == 0:
        x[1] = 60000
    keras.mixed_precision.set_global_policy("mixed_float16")
    try:
        model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2, kernel_initializer="zeros")])
        model.compile(optimizer=hvd.DistributedOptimizer(keras.optimizers.SGD(0.1)), loss="mse")
        model.fit(x, y, batch_size=1, epochs=1, verbose=0, shuffle=False)
    finally:
        keras.mixed_precision.set_global_policy("float32")
    scale = float(model.optimizer.dynamic_scale.numpy())
    return int(model.optimizer.iterations.numpy()), scale, _is_alike(hvd, model.layers[0].kernel.numpy())


def options_of_gradients():
    """Sums, in the network's 16-bit floats, divided before they are made; gradients of a layer that stays each rank's."""
    keras, hvd = _modules()
    found = []
    for options, factor in (
        ({"op": hvd.Sum}, 2.0),
        ({"gradient_predivide_factor": 2.0}, 1.0),
        ({"compression": hvd.Compression.fp16}, 1.0),
    ):
        optimizer = hvd.DistributedOptimizer(keras.optimizers.SGD(0.05, momentum=0.9), **options)
        model = _model(keras, optimizer, seed=0)
        model.fit(*_data(hvd.rank()), batch_size=4, epochs=1, verbose=0, shuffle=False)
        expected = _alone(keras, 1, factor=factor)[0]
        pairs = zip(model.get_weights(), expected.get_weights(), strict=True)
        found.append(all(numpy.allclose(a, b, rtol=1e-2, atol=1e-3) for a, b in pairs))
    model = _model(keras, "sgd", seed=0)
    model.compile(optimizer=hvd.PartialDistributedOptimizer(keras.optimizers.SGD(0.1), local_layers=model.layers[0]), loss="mse")
    model.fit(*_data(hvd.rank()), batch_size=4, verbose=0)
    return found, _is_alike(hvd, model.layers[0].kernel), _is_alike(hvd, model.layers[1].kernel)


def what_is_broadcast():
    """Weights and the optimizer's state, but for local variables."""
    keras, hvd = _modules()
    model = _model(keras, keras.optimizers.Adam(0.1), seed=hvd.rank())
    kept = model.layers[1].kernel
    callback = hvd.callbacks.BroadcastGlobalVariablesCallback(1, local_variables=[kept])
    model.fit(*_data(0), batch_size=4, epochs=1, verbose=0, callbacks=[callback])
    others = [variable for variable in [*model.weights, *model.optimizer.variables] if variable is not kept]
    return _is_alike(hvd, kept), all(_is_alike(hvd, variable) for variable in others)


def saved_and_loaded():
    """On rank 0, with all ranks; the file names Keras's own class."""
    keras, hvd = _modules()
    model = _model(keras, hvd.DistributedOptimizer(keras.optimizers.Adam(0.05)), seed=0)
    model.fit(*_data(hvd.rank()), batch_size=4, epochs=2, verbose=0)
    path = pathlib.Path(hvd.broadcast_object(tempfile.mkdtemp(), 0)) / "model.keras"
    if hvd.rank() == 0:
        model.save(path)
    hvd.allreduce(0.0, name="saved")
    plain, loaded = keras.models.load_model(path), hvd.load_model(path)
    same = type(plain.optimizer) is type(keras.optimizers.Adam()) and type(loaded.optimizer) is not type(plain.optimizer)
    at = int(loaded.optimizer.iterations.numpy())
    loaded.fit(*_data(hvd.rank()), batch_size=4, epochs=1, verbose=0)
    return same, at, _is_alike(hvd, loaded.get_weights()[0])


def averages_and_rates():
    """Of metrics; of a warm-up over two epochs of two steps, and of a schedule after it."""
    keras, hvd = _modules()
    logs = {"b": 1.0 + hvd.rank(), "a": numpy.float32(hvd.rank()), "text": "kept", "array": numpy.array([[1.0, hvd.rank()]])}
    hvd.callbacks.MetricAverageCallback().on_epoch_end(0, logs)
    logs["array"] = logs["array"].tolist()
    model = _model(keras, keras.optimizers.SGD(0.4, momentum=0.9), seed=0)
    warmup = hvd.callbacks.LearningRateWarmupCallback(0.4, warmup_epochs=2, steps_per_epoch=2)
    schedule = hvd.callbacks.LearningRateScheduleCallback(0.4, multiplier=lambda epoch: 0.1 ** (epoch - 2), start_epoch=2)
    history = model.fit(*_data(), batch_size=4, epochs=4, verbose=0, callbacks=[warmup, schedule])
    decay = hvd.callbacks.LearningRateScheduleCallback(0.4, multiplier=0.5, start_epoch=1)
    decayed = model.fit(*_data(), batch_size=8, epochs=4, verbose=0, callbacks=[decay])
    return logs, *([round(rate, 6) for rate in each.history["lr"]] for each in (history, decayed))


def deciding_callbacks():
    """fit() warns of those without averages before them, where the model's optimizer is a distributed one."""
    keras, hvd = _modules()
    stop, plateau = keras.callbacks.EarlyStopping("loss", patience=9), keras.callbacks.ReduceLROnPlateau("loss", patience=9)
    average, saver = hvd.callbacks.MetricAverageCallback(), keras.callbacks.ModelCheckpoint(f"{tempfile.mkdtemp()}/a.keras")
    ours = _model(keras, hvd.DistributedOptimizer(keras.optimizers.SGD(0.1)), seed=0)
    lists = [[stop, average, plateau], [plateau, stop], [average, stop, plateau], [saver, average], stop, None]
    fits = [(ours, callbacks) for callbacks in lists] + [(_model(keras, keras.optimizers.SGD(0.1), seed=0), [stop])]
    found = []
    for model, callbacks in fits:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(*_data(hvd.rank()), batch_size=4, verbose=0, callbacks=callbacks)
        found.append([text.partition(" in callbacks= decides")[0] for each in caught if "decides by the metrics" in (text := str(each.message))])
    return found


def values():
    keras, hvd = _modules()
    rank = hvd.rank()
    found = [
        hvd.allreduce(float(rank)), hvd.allreduce(keras.Variable([1.0, 2.0 + rank]), op=hvd.Sum), hvd.allgather([rank]),
        hvd.broadcast([rank, 7], 1), hvd.reducescatter([1.0, 3.0], op=hvd.Sum),
    ]  # fmt: skip
    return [value.tolist() for value in found]


def arguments_of_keras_2():
    """Are taken of models with our optimizer, as with TensorFlow."""
    keras, hvd = _modules()
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    model.compile(optimizer=hvd.DistributedOptimizer(keras.optimizers.SGD(0.1)), loss="mse", experimental_run_tf_function=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(*_data(hvd.rank()), batch_size=4, verbose=0, workers=1)
    return sum("fit() of Keras 3 has no workers" in str(each.message) for each in caught)


def outside_of_its_set():
    """The rank that is not in the set trains with its own gradients; in a set of one rank, that one does, too."""
    keras, hvd = _modules()
    only = hvd.add_process_set([1])
    model = _model(keras, hvd.DistributedOptimizer(keras.optimizers.SGD(0.1), op=hvd.Sum, process_set=only), seed=0)
    model.optimizer.register_local_var(model.layers[0].kernel)
    alone = _model(keras, keras.optimizers.SGD(0.1), seed=0)
    for each in (model, alone):
        each.fit(*_data(hvd.rank()), batch_size=4, verbose=0, shuffle=False)
    hvd.remove_process_set(only)
    return _is_close(model, alone), not _is_alike(hvd, model.layers[1].kernel), callable(model.optimizer.variables)


def distributed_twice():
    """The second call's options replace the first one's, with a warning; local variables stay local."""
    keras, hvd = _modules()
    model = _model(keras, hvd.DistributedOptimizer(keras.optimizers.SGD(0.05, momentum=0.9), op=hvd.Sum), seed=0)
    model.optimizer.register_local_var(model.layers[0].kernel)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        again = hvd.DistributedOptimizer(model.optimizer)
    model.fit(*_data(hvd.rank()), batch_size=4, verbose=0, shuffle=False)
    told = sum("is distributed already: the options of this call replace" in str(each.message) for each in caught)
    return told, again is model.optimizer, _is_alike(hvd, model.layers[0].kernel)


def refusals():
    keras, hvd = _modules()
    schedule = keras.optimizers.schedules.ExponentialDecay(0.1, 10, 0.9)
    model = _model(keras, keras.optimizers.SGD(schedule), seed=0)
    texts = []
    for wrong in (
        lambda: model.fit(*_data(), verbose=0, callbacks=[hvd.callbacks.LearningRateWarmupCallback(0.1)]),
        lambda: model.fit(*_data(), verbose=0, callbacks=[hvd.callbacks.BestModelCheckpoint()]),
        lambda: hvd.DistributedOptimizer(model),
        lambda: hvd.DistributedOptimizer(keras.optimizers.SGD(), op=hvd.Adasum),
        lambda: hvd.DistributedOptimizer(keras.optimizers.SGD(), backward_passes_per_step=0),
        lambda: hvd.broadcast_global_variables(0),
        lambda: hvd.allreduce(1.0, op=hvd.Max),
    ):
        try:
            wrong()
            texts.append("nothing was raised")
        except (RuntimeError, ValueError) as error:
            texts.append(str(error))
    return texts


REFUSALS = [
    "which callbacks cannot set", "set its `filepath` before", "takes an optimizer of Keras, not Sequential", "op=Average and op=Sum",
    "give a positive number", "is for graphs of TensorFlow 1", "give op=Average or op=Sum",
]  # fmt: skip


def names_of_horovod():
    """horovod.keras, with its own order of arguments, and nothing of TensorFlow's."""
    import horovod.keras

    keras, hvd = _modules()
    optimizer = keras.optimizers.SGD(0.1)
    groups = horovod.keras.DistributedOptimizer(optimizer, None, "", "", hvd.Compression.fp16, False, 1.0, hvd.Sum, 0, 3)._accumulation
    checkpoint = horovod.keras.callbacks.BestModelCheckpoint("loss", 1, "max")
    alike = [isinstance(checkpoint, hvd.callbacks.BestModelCheckpoint) and not checkpoint.save_weights_only]
    alike.append(groups.reduction._groups == 3 and groups.reduction._options["op"] == hvd.Sum)
    alike.append(horovod.keras.callbacks.MetricAverageCallback is hvd.callbacks.MetricAverageCallback)
    return alike, "tensorflow" in sys.modules


CASES = {
    fit_as_one_process: (True, True),
    compiled: (True, True),
    several_passes: (True, 3),
    lists_in_turn: (-2.0, -20.0),
    scales_of_losses: (3, 16384.0, True),
    options_of_gradients: ([True, True, True], False, True),
    what_is_broadcast: (False, True),
    saved_and_loaded: (True, 2, True),
    averages_and_rates: ({"a": 0.5, "b": 1.5, "text": "kept", "array": [[1.0, 0.5]]}, [0.3, 0.4, 0.4, 0.04], [0.04, 0.4, 0.2, 0.1]),
    deciding_callbacks: [["EarlyStopping"], ["ReduceLROnPlateau, EarlyStopping"], [], [], ["EarlyStopping"], [], []],
    values: lambda rank: [0.5, [2.0, 5.0], [0, 1], [1, 7], [[2.0], [6.0]][rank]],
    arguments_of_keras_2: 1,
    names_of_horovod: ([True, True, True], False),
    outside_of_its_set: (True, True, True),
    distributed_twice: (1, True, False),
}


def _all():
    # The folder of TensorFlow's tests is beside what starts a rank, and Keras would take it for TensorFlow.
    sys.path[:] = [path for path in sys.path if not pathlib.Path(path, "tensorflow", "conftest.py").exists()]
    _, hvd = _modules()
    hvd.init(process_sets="dynamic")
    return {**cases.run(CASES), "refusals": refusals()}


outcomes = cases.fixture(_all)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_case(outcomes, case):
    for rank, found in enumerate(outcomes):
        expected = CASES[case](rank) if callable(CASES[case]) else CASES[case]
        assert found[case.__name__] == expected


def test_what_is_refused(outcomes):
    for found in outcomes:
        assert [part in text for part, text in zip(REFUSALS, found["refusals"], strict=True)] == [True] * len(REFUSALS), found
