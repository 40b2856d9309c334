"""A rank whose operation of TensorFlow only lost another rank prints one line, eagerly and in a function, as with the other bindings."""

import re
import subprocess
import sys

import ranks

PROGRAM = """
import tensorflow as tf
import horovod.tensorflow as hvd

hvd.init()
step = lambda: hvd.allreduce(tf.constant(1.0), name="step")
if hvd.rank() == 2:
    step = tf.function(step)
for i in range(2):
    hvd.barrier()
    if i == 1 and hvd.rank() == 1:
        raise ValueError("a sample without a label")
    if i == 1:
        step()
"""


def test_the_cause_is_shown_and_each_victim_is_one_line(tmp_path):
    (tmp_path / "train.py").write_text(PROGRAM)
    done = subprocess.run(
        [str(ranks.LAUNCHER), "-np", "3", sys.executable, str(tmp_path / "train.py")],
        env=ranks.environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=ranks.TIMEOUT_SECONDS,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    loss = "PeerLostError: rank 1 on localhost failed: ValueError: a sample without a label (--verbose shows the traceback)"
    places = {f"{tmp_path / 'train.py'}:6 in <lambda>", f"{tmp_path / 'train.py'}:14 in <module>"}  # eagerly; of a function
    lines = [line.partition("<stderr>:")[2] for line in done.stderr.splitlines() if re.match(r"\[[02]\]<stderr>:.*Error", line)]
    assert {line.removesuffix(f": {loss}") for line in lines} == places and len(lines) == 2, done.stderr
    assert done.stderr.count("Traceback (most recent call last)") == 2, done.stderr  # rank 1's, and the launcher's copy of it
    assert re.search(r"^runjob: error: rank 1 on localhost \(pid \d+\) .*ValueError: a sample without a label", done.stderr, re.MULTILINE)
