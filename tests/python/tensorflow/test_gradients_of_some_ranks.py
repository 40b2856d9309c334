"""In a function a gradient cannot be zeros on the ranks that lack it: the error names its variable."""

import subprocess
import sys

import ranks

PROGRAM = """
import tensorflow as tf
import runjob.tensorflow as hvd

hvd.init()
first, second = tf.Variable(1.0, name="first"), tf.Variable(1.0, name="second")

@tf.function
def step():
    with tf.GradientTape() as tape:
        loss = 2.0 * first + (4.0 * second if hvd.rank() == 0 else 0.0)
    return hvd.DistributedGradientTape(tape).gradient(loss, [first, second])

step()
"""


def test_the_variable_is_named_where_ranks_wait_for_each_other(tmp_path):
    (tmp_path / "train.py").write_text(PROGRAM)
    done = subprocess.run(
        [str(ranks.LAUNCHER), "-np", "2", "--stall-check-shutdown-time-seconds", "1", sys.executable, str(tmp_path / "train.py")],
        env=ranks.environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=ranks.TIMEOUT_SECONDS,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    (blame,) = [line for line in done.stderr.splitlines() if line.startswith("runjob: error: ")]
    assert "rank 0 on localhost waits in allreduce 'grouped_allreduce." in blame, blame
    assert "gradients_of_second_and_first' and rank 1 on localhost in allreduce 'allreduce." in blame, blame
    assert "gradients_of_first': the ranks take different steps" in blame, blame
