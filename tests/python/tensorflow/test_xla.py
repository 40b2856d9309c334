"""python/runjob/tensorflow/xla.py: where XLA compiles, and where it does not."""

import tensorflow_cases


def compiled_functions():
    """May be called, and may not call."""
    tf, hvd = tensorflow_cases.module()
    inner = tf.function(lambda x: x * 2.0, jit_compile=True)
    around = tf.function(lambda x: hvd.allreduce(inner(x), op=hvd.Sum))
    found = [around(tf.constant(1.0)).numpy().item()]
    called = tf.function(lambda x: hvd.allreduce(x))
    for function in (lambda x: hvd.allreduce(x), lambda x: called(x), lambda x: tf.cond(x > 0, lambda: hvd.allreduce(x), lambda: x)):
        try:
            tf.function(function, jit_compile=True)(tf.constant(1.0))
            found.append("nothing was raised")
        except ValueError as error:
            found.append("is inside of a function that XLA compiles" in str(error))
    return found


CASES = {compiled_functions: [4.0, True, True, True]}

test_every_case = tensorflow_cases.test(CASES)
