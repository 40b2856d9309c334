"""python/runjob/keras_elastic.py with PyTorch as Keras's backend; tests/python/tensorflow/elastic/test_tensorflow_elastic.py has the other one."""

import importlib.util
import os
import pathlib
import sys

import jobs
import pytest
import ranks

TRAINING = pathlib.Path(__file__).with_name("keras_training.py")
pytestmark = pytest.mark.skipif(importlib.util.find_spec("keras") is None, reason="no Keras here: pip install keras")


@pytest.mark.parametrize("lost", [0, 2])
def test_a_model_goes_on_at_the_batch_of_its_commit(lost):
    options = ("-np", "3", "--min-np", "2", "--rank-restarts", "0")
    job = jobs.run(*options, sys.executable, TRAINING, lost, env=ranks.environment(KERAS_BACKEND="torch"))
    assert job.returncode == 0, job.stdout + job.stderr
    # Four epochs of six steps, whatever was done twice.
    assert [lines[-1] for lines in jobs.by_rank(job.stdout).values()] == ["size 2, epochs 4, batch 0, steps 24, equal True"] * 2


@pytest.mark.thorough
def test_a_model_grows_again():
    job = jobs.run("-np", "3", "--min-np", "2", sys.executable, TRAINING, 1, "grow", env=ranks.environment(KERAS_BACKEND="torch"))
    assert job.returncode == 0, job.stdout + job.stderr
    assert [lines[-1] for lines in jobs.by_rank(job.stdout).values()] == ["size 3, epochs all, batch 0, steps all, equal True"] * 3


def test_a_rank_leaves_in_the_middle_of_fit():
    with jobs.Marked("-np", "3", "--min-np", "2", sys.executable, TRAINING, "none", "shrink", env=ranks.environment(KERAS_BACKEND="torch")) as job:
        job.wait_for_lines(3)
        assert jobs.run("resize", str(job.process.pid), "-np", "2").returncode == 0
        status, output, errors = job.finish()
        assert status == 0, output + errors
        lines = [lines[-1] for lines in jobs.by_rank(output).values()]
        assert sorted(lines) == ["size 2, epochs all, batch 0, steps all, equal True"] * 2, output
        assert "the hosts have changed: rank 2 on localhost has left. The job goes on with 2 ranks (generation 1)" in errors
        assert job.alive() == []


BATCHES = """
import os, keras, numpy as np, runjob.keras as hvd
hvd.init()
model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
model.compile(optimizer=hvd.DistributedOptimizer(keras.optimizers.SGD(0.1)), loss="mse")
state = hvd.elastic.KerasState(model, epoch=3, batch=4)
update = hvd.elastic.UpdateBatchStateCallback(state)
seen = []

class Recorder(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        seen.append((batch, state.batch, int(model.optimizer.iterations)))

callbacks = [Recorder(), hvd.elastic.UpdateEpochStateCallback(state), update]
model.fit(np.ones((12, 2)), np.ones((12, 1)), batch_size=2, epochs=2, callbacks=callbacks, verbose=0)
print(seen[3:8], state.epoch, state.batch)
state.batch = 99
model.fit(np.ones((4, 2)), np.ones((4, 1)), batch_size=2, callbacks=callbacks, verbose=0)
print(int(model.optimizer.iterations), state.epoch, state.batch)
model.fit(np.ones((4, 2)), np.ones((4, 1)), batch_size=2, initial_epoch=5, epochs=6, callbacks=callbacks, verbose=0)
print(int(model.optimizer.iterations), state.epoch, state.batch)
model.get_layer(index=0).kernel.assign([[7.0], [7.0]])
state.restore()
print(float(keras.ops.max(model.get_layer(index=0).kernel)) < 7, int(model.optimizer.iterations), state.epoch, state.batch)
"""


def test_batches_before_the_states_are_left_out(run_python):
    done = run_python(BATCHES, KERAS_BACKEND=os.environ.get("KERAS_BACKEND", "torch"))
    assert done.returncode == 0, done.stderr
    first, second, third, restored = done.stdout.splitlines()
    # The recorder comes before the callback that counts. Two of six batches of the first epoch are left, then there are six.
    assert first == "[(3, 4, 0), (4, 4, 1), (5, 5, 2), (0, 0, 3), (1, 1, 4)] 5 0"
    assert second == "8 6 0", "nothing was left of that epoch"
    assert third == "10 7 0", "epochs are counted, whichever number fit() begins with"
    assert restored == "True 0 3 4"
