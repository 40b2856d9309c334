"""python/runjob/tensorflow/xla.py: where XLA compiles, and where it does not."""


def _compiled():
    import tensorflow as tf

    import runjob.tensorflow as hvd

    hvd.init()
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


def test_compiled_functions_may_be_called_and_may_not_call(run_ranks):
    assert run_ranks(_compiled, 0).results == [[2.0, True, True, True]]
