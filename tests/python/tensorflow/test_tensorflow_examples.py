"""The examples, as their users start them; and a rank that leaves while another is in the middle of a function."""

import re

import pytest
import ranks


@pytest.mark.parametrize("name, accuracy", [("tensorflow_digits", 0.93), ("keras_digits", 0.9)])
def test_an_example_learns(run_ranks, name, accuracy):
    done = run_ranks(ranks.ROOT / "examples" / f"{name}.py", 2)
    assert float(re.findall(r"test accuracy (\S+)", done.stdout)[-1]) > accuracy, done.stdout


def _one_leaves():
    import tensorflow as tf

    import runjob.tensorflow as hvd

    hvd.init()
    hvd.allreduce(tf.ones(2), name="first")
    if hvd.rank() == 1:
        hvd.shutdown()
        return None
    step = tf.function(lambda x: hvd.allreduce(hvd.allreduce(x, name="second"), name="third"))
    try:
        step(tf.ones(2))
    except tf.errors.AbortedError as error:
        return "HorovodAllreduce" in error.message and "rank 1" in error.message


def test_operations_end_when_another_rank_leaves_and_name_it(run_ranks):
    assert run_ranks(_one_leaves, 2).results == [True, None]
