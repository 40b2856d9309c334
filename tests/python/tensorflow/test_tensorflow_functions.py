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


def what_broadcast_returns():
    """The variables that it has set: eagerly, in a function, and as values in a graph of TensorFlow 1, of which one runs all it needs."""
    tf, hvd = tensorflow_cases.module()
    variables = [tf.Variable(float(hvd.rank())), tf.Variable([hvd.rank(), 5])]
    eager = hvd.broadcast_(variables, 1)
    found = [len(eager) == 2 and all(given is returned for given, returned in zip(variables, eager))]
    found.append(hvd.broadcast_variables(variables, 1) == variables)

    @tf.function
    def function():
        (returned,) = hvd.broadcast_([variables[0]], 0)
        return returned + 1.0

    found += [float(function()), float(variables[0])]
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        kept = [tf.compat.v1.get_variable(name, initializer=10.0 * hvd.rank()) for name in "ab"]
        values = hvd.broadcast_(kept, 1)
        operation = hvd.broadcast_variables(kept, 0)
        session.run(tf.compat.v1.global_variables_initializer())
        found.append([each.item() for each in session.run(values)])
        found.append([each.item() for each in session.run(kept)])
        found.append(session.run(operation))
    return found


def a_model_with_a_vocabulary():
    """Keras 2 counts the vocabulary among the variables: it is neither broadcast nor committed."""
    tf, hvd = tensorflow_cases.module()
    import runjob.tensorflow.keras as keras
    from runjob.tensorflow.functions import assignable

    text = tf.keras.layers.TextVectorization(output_sequence_length=4)
    text.adapt(["a b c"])
    layers = [tf.keras.Input((1,), dtype=tf.string), text, tf.keras.layers.Embedding(10, 2), tf.keras.layers.Flatten(), tf.keras.layers.Dense(1)]
    model = tf.keras.Sequential(layers)
    model.compile("sgd", "mse")
    model.layers[-1].kernel.assign(tf.fill([8, 1], float(hvd.rank())))
    callback = keras.callbacks.BroadcastGlobalVariablesCallback(1)
    callback.set_model(model)
    callback.on_batch_end(0)
    broadcast = float(tf.reduce_sum(model.layers[-1].kernel))
    state = keras.elastic.KerasState(model)
    state.commit()
    model.layers[-1].kernel.assign(tf.zeros([8, 1]))
    state.restore()
    variable = tf.Variable(1.0)
    return broadcast, float(tf.reduce_sum(model.layers[-1].kernel)), assignable([object(), variable]) == [variable]


CASES = {
    a_model_with_a_vocabulary: (8.0, 8.0, True),
    what_broadcast_returns: [True, True, 2.0, 1.0, [10.0, 10.0], [10.0, 10.0], None],
    broadcasts: lambda rank: ([[2, 2], 1, [False], [8]], True, 1.0, ({"rank": 1}, 0, [0, 1], True)),
}  # fmt: skip

test_every_case = tensorflow_cases.test(CASES)
