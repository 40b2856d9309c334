"""python/runjob/tensorflow/graph_optimizer.py: graphs and sessions of TensorFlow 1."""

import tensorflow_cases


def graphs_of_tensorflow_1():
    tf, hvd = tensorflow_cases.module()
    v1 = tf.compat.v1
    with tf.Graph().as_default():
        x, y = tensorflow_cases.data(tf, hvd.rank())
        w = v1.get_variable("w", initializer=tf.fill([3, 2], float(hvd.rank())))
        loss = tf.reduce_mean((x @ w - y) ** 2)
        optimizer = hvd.DistributedOptimizer(v1.train.GradientDescentOptimizer(0.1))
        train = optimizer.minimize(loss)
        hook = hvd.BroadcastGlobalVariablesHook(0)
        with v1.train.MonitoredTrainingSession(hooks=[hook]) as session:
            first = session.run(w)
            session.run(train)
            second = session.run(w)
        assert optimizer.get_slot_names() == []
    x, y = (tensor.numpy() for tensor in tensorflow_cases.data(tf))
    expected = -0.1 * 2 * x.T @ (0 - y) / y.size
    return bool((first == 0).all()), tensorflow_cases.close([second], [expected])


CASES = {
    graphs_of_tensorflow_1: (True, True),
}  # fmt: skip

test_every_case = tensorflow_cases.test(CASES)
