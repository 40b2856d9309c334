"""What the cases of this folder share: one job of two ranks, which runs all of them, since importing TensorFlow takes long; and the
data of a small regression, which the ranks have parts of.

A test module has CASES, as cases.py says, whose expected values may be functions of the rank, and `test_every_case = tensorflow_cases.test(CASES)`.
"""

import importlib.util
import pathlib

import numpy

import cases

FOLDER = pathlib.Path(__file__).parent


def module():
    import tensorflow as tf

    import runjob.tensorflow as hvd

    return tf, hvd


def is_keras_3():
    import keras

    return not keras.__version__.startswith("2.")


def run_all():
    """On a rank: what each case of each module returns, by its module and name."""
    _, hvd = module()
    hvd.init(process_sets="dynamic")
    found = {}
    for path in sorted(FOLDER.glob("test_*.py")):
        if "tensorflow_cases.test(CASES)" not in path.read_text():
            continue
        spec = importlib.util.spec_from_file_location(path.stem, path)
        loaded = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(loaded)
        found[path.stem] = cases.run(loaded.CASES)
    return found


def test(module_cases):
    """A test of the module's cases."""

    def test_every_case(request, outcomes):
        wrong = []
        for rank, of_rank in enumerate(outcomes):
            found = of_rank[request.module.__name__]
            for case, expected in module_cases.items():
                wanted = expected(rank) if callable(expected) else expected
                if found[case.__name__] != wanted:
                    wrong.append(f"{case.__name__} on rank {rank}: {found[case.__name__]}, not {wanted}")
        assert not wrong, "\n".join(wrong)

    return test_every_case


def data(tf, rank=None):
    """Eight rows with three columns; those of a rank, or all."""
    random = numpy.random.default_rng(1)
    x, y = random.normal(size=(8, 3)), random.normal(size=(8, 2))
    rows = slice(None) if rank is None else slice(4 * rank, 4 * rank + 4)
    return tf.constant(x[rows], tf.float32), tf.constant(y[rows], tf.float32)


def variables_of_model(tf):
    return [tf.Variable(tf.reshape(tf.range(6.0), [3, 2]) / 10), tf.Variable([0.5, -0.5])]


def loss_of(tf, variables, x, y):
    return tf.reduce_mean((x @ variables[0] + variables[1] - y) ** 2)


def expected_gradients(tf):
    variables = variables_of_model(tf)
    with tf.GradientTape() as tape:
        loss = loss_of(tf, variables, *data(tf))
    return tape.gradient(loss, variables)


def close(got, expected, tolerance=1e-5):
    return all(numpy.allclose(a, b, rtol=tolerance, atol=tolerance) for a, b in zip(got, expected, strict=True))


def steps(tf, hvd, optimizer, passes=1, count=3):
    variables = variables_of_model(tf)
    x, y = data(tf, hvd.rank())

    def step():
        with tf.GradientTape() as tape:
            loss = loss_of(tf, variables, x, y)
        gradients = tape.gradient(loss, variables)
        optimizer.apply_gradients(zip(gradients, variables))

    step()
    traced = tf.function(step)
    for _ in range(count * passes - 1):
        traced()
    return [variable.numpy() for variable in variables]


def steps_alone(tf, optimizer, factor=1.0, count=3, rank=None):
    variables = variables_of_model(tf)
    for _ in range(count):
        with tf.GradientTape() as tape:
            loss = loss_of(tf, variables, *data(tf, rank))
        gradients = [gradient * factor for gradient in tape.gradient(loss, variables)]
        optimizer.apply_gradients(zip(gradients, variables))
    return [variable.numpy() for variable in variables]
