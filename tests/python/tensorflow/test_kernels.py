"""python/runjob/tensorflow/kernels.py: how the operations come into TensorFlow, and what happens when they cannot."""

import tensorflow_cases


def _synchronously():
    import tensorflow as tf

    import runjob.tensorflow as hvd
    from runjob.tensorflow import kernels

    hvd.init()
    return kernels.state(), tf.function(lambda x: hvd.allreduce(x, op=hvd.Sum))(tf.constant(1.0)).numpy().item()


def state():
    from runjob.tensorflow import kernels

    return kernels.state()


def operations_of_saved_graphs():
    """Horovod's names of the operations in saved graphs, but those that write into variables."""
    from runjob.tensorflow import kernels

    names = ("allreduce", "grouped_allgather", "broadcast", "broadcast_inplace", "broadcast_inplace_resource")
    return [hasattr(kernels.operations(), f"horovod_{name}") for name in names]


CASES = {state: "asynchronous", operations_of_saved_graphs: [True, True, True, False, False]}

test_every_case = tensorflow_cases.test(CASES)


def test_operations_are_synchronous_when_that_is_asked_for(run_ranks, monkeypatch):
    monkeypatch.setenv("RUNJOB_TENSORFLOW_SYNCHRONOUS", "1")
    assert run_ranks(_synchronously, 2).results == [("synchronous", 2.0)] * 2


def test_without_the_library_the_import_says_what_is_missing(run_python, tmp_path):
    from runjob import _library

    other = tmp_path / "librunjob.so"
    other.symlink_to(_library.find())
    done = run_python("import runjob.tensorflow", RUNJOB_LIBRARY=str(other))
    expected = f"{tmp_path}/runjob/librunjob_tensorflow.so does not exist: runjob was built without its operations for TensorFlow"
    assert expected in done.stderr


def test_a_tensorflow_without_the_interface_is_named(run_python, tmp_path):
    """One that is not the real one stands for an older one, which no Python of today can have."""
    (tmp_path / "tensorflow.py").write_text(
        "import ctypes, types\n__version__ = '2.12.0'\nclass errors:\n    class OpError(Exception): pass\n"
        "class compat: v1 = None\n"
        "def load_op_library(path):\n    return ctypes.CDLL(path)\n"
    )
    code = "import sys; sys.path.insert(0, sys.argv[1]); from runjob.tensorflow import kernels"
    done = run_python(f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import runjob.tensorflow; {code!r}")
    assert "needs TensorFlow 2.13 or newer, and this is 2.12.0: this TensorFlow has no TF_NewStatus()" in done.stderr
