"""python/runjob/tensorflow/elastic/variables.py and state.py: what commits have of TensorFlow's variables."""

COPIES = """
import numpy as np, tensorflow as tf
from runjob.elastic.array_kinds import kind_of
from runjob.tensorflow.elastic import variables
import runjob.tensorflow.elastic
for dtype in (tf.bool, tf.uint8, tf.bfloat16, tf.float64, tf.complex64):
    for shape in ((), (0, 2), (3, 2)):
        variable = tf.Variable(tf.cast(tf.ones(shape), dtype))
        kind = kind_of(variable)
        form = kind.form(variable)
        memory = memoryview(bytearray(form.nbytes))
        copy = kind.copy_in(form, memory)
        kind.save(copy, variable)
        variable.assign(tf.cast(tf.zeros(shape), dtype))
        assert kind.restore(variable, copy) is variable and (variable.numpy() == np.ones(shape)).all(), (dtype, shape)
assert kind_of(tf.Variable("text")) is None and kind_of(tf.ones(2)) is None
try:
    kind.new(np.zeros(3))
except Exception as error:
    print(type(error).__name__, error)
"""

GRAPH = """
import tensorflow as tf, horovod.tensorflow as hvd
tf.compat.v1.disable_eager_execution()
variable = tf.compat.v1.get_variable("v", initializer=[1.0, 2.0])
with tf.compat.v1.Session() as session:
    session.run(tf.compat.v1.global_variables_initializer())
    state = hvd.elastic.TensorFlowState(session=session, step=1)
    session.run(variable.assign([3.0, 4.0]))
    state.step = 2
    state.restore()
    print(session.run(variable).tolist(), state.step)
"""


def test_every_dtype_and_shape_is_copied(run_python):
    done = run_python(COPIES)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("MismatchError a commit has a variable of shape (3,), which the model of this process has not")


def test_a_session_of_tensorflow_1_is_restored(run_python):
    done = run_python(GRAPH)
    assert done.stdout == "[1.0, 2.0] 1\n", done.stderr


def test_variables_of_eager_execution_are_given(run_python):
    done = run_python("import tensorflow as tf, horovod.tensorflow as hvd\nv = tf.Variable([1.0])\n"
                      "s = hvd.elastic.TensorFlowState([v])\nv.assign([2.0])\ns.restore()\nprint(v.numpy())")  # fmt: skip
    assert done.stdout == "[1.]\n", done.stderr
