"""python/runjob/keras/backend.py: which Keras is taken. And the names of Horovod."""

import ranks


def _names():
    """Of all three modules in one process, since importing TensorFlow takes long; without any other framework."""
    import sys

    import keras
    import tensorflow

    import horovod.keras as of_keras
    import horovod.tensorflow as hvd
    import horovod.tensorflow.keras as of_tensorflow_keras

    hvd.init()
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile(optimizer=of_keras.DistributedOptimizer(keras.optimizers.SGD(0.1)), loss="mse")
    found = [
        hvd.mpi_ops._basics, hvd.util._executing_eagerly(), hvd._executing_eagerly(), hvd.split_list([1, 2], 2),
        hvd.check_num_rank_power_of_2(4), hvd.elastic, hvd.SyncBatchNormalization, of_tensorflow_keras.callbacks.BestModelCheckpoint,
        of_tensorflow_keras.load_model, of_tensorflow_keras.Sum, of_keras.callbacks.LearningRateWarmupCallback,
        of_keras.PartialDistributedOptimizer, of_keras.Adasum,
    ]  # fmt: skip
    variables = [tensorflow.Variable(1.0), [tensorflow.Variable(2.0)]]
    references = hvd.vars_to_refs(variables)
    found += [{references}, hvd.refs_to_vars(references)[1][0] is variables[1][0] or None, hvd.check_extension]
    hvd.gpu_available("tensorflow")
    others = [name for name in ("torch", "jax", "mxnet", "mpi4py") if name in sys.modules]
    return hvd.size(), of_tensorflow_keras.size(), of_keras.size(), all(each is not None for each in found), others


def test_the_names_of_horovod(run_ranks):
    assert run_ranks(_names, 0).results == [(1, 1, 1, True, [])]


def test_another_backend_is_named(tmp_path):
    """A stand-in for Keras with another backend, which would need that framework."""
    (tmp_path / "keras.py").write_text("class backend:\n    backend = staticmethod(lambda: 'jax')\n")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import runjob.keras"
    assert "with TensorFlow and with PyTorch, and this Keras uses jax" in ranks.python("-c", code).stderr
