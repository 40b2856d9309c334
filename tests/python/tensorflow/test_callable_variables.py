"""python/runjob/callable_variables.py: `optimizer.variables()` of Keras 2, whichever Keras is there."""

import types

import tensorflow_cases

from runjob import callable_variables


def of_every_optimizer():
    """As a list and as a call, of plain and of distributed optimizers, of one that scales the loss, and of tf.compat.v1.train."""
    tf, hvd = tensorflow_cases.module()
    plain = tf.keras.optimizers.SGD(0.1, momentum=0.9)
    distributed = hvd.DistributedOptimizer(tf.keras.optimizers.Adam(0.1))
    scaling = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD(0.1))
    kernel = tf.Variable([1.0])
    found = []
    for optimizer in (plain, distributed):
        optimizer.apply_gradients([(tf.constant([1.0]), kernel)])
        found.append([id(each) for each in optimizer.variables()] == [id(each) for each in optimizer.variables])
    found.append(len(scaling.variables()) == len(scaling.variables) > 0)
    found.append(hvd.DistributedOptimizer(tf.compat.v1.train.GradientDescentOptimizer(0.1)).variables())
    return [*found, len(plain.variables) >= 2]


CASES = {of_every_optimizer: [True, True, True, [], True]}

test_every_case = tensorflow_cases.test(CASES)


def test_classes_are_changed_once():
    class Base:
        variables = property(lambda self: [1])
        other = property(lambda self: [2])

    class Derived(Base):
        variables = property(lambda self: (3,))

    module = types.SimpleNamespace(Derived=Derived, number=4)
    callable_variables.change(module)
    getters = Base.variables.fget, Derived.variables.fget
    callable_variables.change(module)
    assert (Base.variables.fget, Derived.variables.fget) == getters
    assert Base().variables() == Base().variables == [1]
    assert Derived().variables == (3,) and Base().other == [2]
