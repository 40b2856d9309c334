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


def several_passes():
    """Steps after every second run, of the sum of its two gradients."""
    tf, hvd = tensorflow_cases.module()
    v1 = tf.compat.v1
    with tf.Graph().as_default():
        w = v1.get_variable("w", initializer=[0.0])
        optimizer = hvd.DistributedOptimizer(v1.train.MomentumOptimizer(1.0, 0.5), backward_passes_per_step=2)
        train = optimizer.minimize(tf.reduce_sum(w) * (hvd.rank() + 1))
        values = []
        with v1.train.MonitoredTrainingSession(hooks=[hvd.BroadcastGlobalVariablesHook(0)]) as session:
            for _ in range(4):
                session.run(train)
                values.append(float(session.run(w)[0]))
    return values


CASES = {
    graphs_of_tensorflow_1: (True, True),
    several_passes: [0.0, -3.0, -3.0, -7.5],
}  # fmt: skip

test_every_case = tensorflow_cases.test(CASES)
