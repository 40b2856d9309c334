"""python/runjob/tensorflow/elastic/failures.py: which errors of TensorFlow an elastic job goes on after."""

FAILURES = """
import tensorflow as tf, runjob.tensorflow as hvd
from runjob.exceptions import HorovodInternalError
hvd.init()
state = hvd.elastic.TensorFlowState([tf.Variable(1.0)])
errors = tf.errors
for error in (
    errors.UnknownError(None, None, "rank 1 was lost [Op:HorovodAllreduce]"), errors.AbortedError(None, None, "[Op:HorovodBroadcast]"),
    errors.UnknownError(None, None, "of the program"), errors.FailedPreconditionError(None, None, "[Op:HorovodAllreduce]"), ValueError("x"),
):
    def fail(state):
        raise error
    try:
        hvd.elastic.run(fail)(state)
    except Exception as raised:
        print(type(raised).__name__, isinstance(raised, HorovodInternalError), raised.__cause__ is error)
"""


def test_errors_of_collectives_are_failures_of_the_job(run_python):
    done = run_python(FAILURES)
    assert done.stdout.splitlines() == [
        "PeerLostError True True", "PeerLostError True True", "UnknownError False False", "FailedPreconditionError False False",
        "ValueError False False",
    ], done.stderr  # fmt: skip
