"""python/runjob/learning_rate.py: one optimizer's rate and momentum."""

import types

import tensorflow_cases


def momentum():
    """Is scaled with the rate until it is restored, where it is a variable."""
    import tensorflow as tf

    from runjob.learning_rate import LearningRate

    optimizer = types.SimpleNamespace(learning_rate=0.1, momentum=tf.Variable(0.9))
    rate = LearningRate(optimizer, corrects_momentum=True)
    found = []
    for value in (0.1, 0.2, 0.4):
        rate.set(value)
        found.append(round(float(optimizer.momentum), 6))
    rate.restore_momentum()
    found.append(round(float(optimizer.momentum), 6))
    LearningRate(optimizer, corrects_momentum=False).set(0.1)
    return [*found, round(float(optimizer.momentum), 6), optimizer.learning_rate]


CASES = {momentum: [0.9, 1.8, 1.8, 0.9, 0.9, 0.1]}

test_every_case = tensorflow_cases.test(CASES)
