"""python/runjob/keras/backend.py: which Keras is taken."""

import pytest


def _train():
    import keras

    import runjob.keras as hvd

    hvd.init()
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile(optimizer=hvd.DistributedOptimizer(keras.optimizers.SGD(0.1)), loss="mse")
    return hvd.size(), hvd.callbacks.MetricAverageCallback.__name__


def test_keras_with_tensorflow_is_taken(run_ranks):
    assert run_ranks(_train, 0).results == [(1, "MetricAverageCallback")]


def test_another_backend_is_named(run_python, tmp_path):
    """A stand-in for Keras with another backend, which would need that framework."""
    (tmp_path / "keras.py").write_text("class backend:\n    backend = staticmethod(lambda: 'jax')\n")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import runjob.keras"
    assert "runjob.keras is for Keras with TensorFlow, and this Keras uses jax" in run_python(code).stderr


@pytest.mark.parametrize("name", ["horovod.tensorflow", "horovod.tensorflow.keras", "horovod.keras"])
def test_the_names_of_horovod(run_python, name):
    checks = {
        "horovod.tensorflow": "hvd.mpi_ops._basics, hvd.util._executing_eagerly(), hvd._executing_eagerly(), hvd.split_list([1, 2], 2), "
        "hvd.check_num_rank_power_of_2(4), hvd.gpu_available('tensorflow'), hvd.elastic, hvd.SyncBatchNormalization",
        "horovod.tensorflow.keras": "hvd.callbacks.BestModelCheckpoint, hvd.load_model, hvd.Average, hvd.Sum",
        "horovod.keras": "hvd.callbacks.LearningRateWarmupCallback, hvd.PartialDistributedOptimizer, hvd.Adasum",
    }
    done = run_python(f"import {name} as hvd; hvd.init(); print(hvd.size(), {checks[name]})")
    assert done.stdout.startswith("1 "), done.stderr
