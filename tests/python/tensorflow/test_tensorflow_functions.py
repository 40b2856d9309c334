"""python/runjob/tensorflow/functions.py: variables and objects."""

import tensorflow_cases


def broadcasts():
    """Of variables of TensorFlow and Keras, of any dtype, eagerly and in a function; and objects."""
    tf, hvd = tensorflow_cases.module()
    rank = hvd.rank()
    variables = [tf.Variable([1.0 + rank, 2.0]), tf.Variable(rank, dtype=tf.int64), tf.Variable([rank == 0])]
    variables.append(tf.Variable(tf.constant([7 + rank], tf.uint32)))
    layer = tf.keras.layers.Dense(2)
    layer.build((None, 3))
    hvd.broadcast_variables(variables + list(layer.variables), root_rank=1)
    assert hvd.broadcast_variables([], 0) == []
    values = [variable.numpy().tolist() for variable in variables]
    kernels = hvd.allgather(tf.reshape(tf.convert_to_tensor(layer.variables[0]), [1, -1])).numpy()
    other = tf.Variable(float(rank))
    tf.function(lambda: hvd.broadcast_([other], 1, name="other"))()
    objects = hvd.broadcast_object({"rank": rank}, 1), hvd.broadcast_object_fn(0)(rank), hvd.allgather_object(rank)
    try:
        hvd.broadcast_global_variables(0)
    except RuntimeError as error:
        objects += ("broadcast_variables(model.variables" in str(error),)
    return values, bool((kernels[0] == kernels[1]).all()), float(other), objects


CASES = {
    broadcasts: lambda rank: ([[2, 2], 1, [False], [8]], True, 1.0, ({"rank": 1}, 0, [0, 1], True)),
}  # fmt: skip

test_every_case = tensorflow_cases.test(CASES)
