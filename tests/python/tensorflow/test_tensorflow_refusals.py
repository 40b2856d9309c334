"""What runjob.tensorflow refuses, and what comes later."""

import warnings

import tensorflow_cases


def refusals():
    tf, hvd = tensorflow_cases.module()
    found = []
    for trial in (
        lambda: hvd.DistributedOptimizer("sgd"),
        lambda: hvd.DistributedOptimizer(tf.keras.optimizers.SGD(0.1), backward_passes_per_step=0),
        lambda: hvd.DistributedGradientTape(tf.GradientTape(), op=hvd.Sum, gradient_predivide_factor=2.0),
        lambda: hvd.DistributedGradientTape(tf.GradientTape(), groups="two"),
        lambda: hvd.PartialDistributedGradientTape(tf.GradientTape(), local_layers=[3]),
        lambda: hvd.SyncBatchNormalization(fused=True),
        lambda: hvd.data,
    ):
        try:
            trial()
            found.append("nothing was raised")
        except Exception as error:
            found.append(f"{type(error).__name__}: {error}")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        hvd.DistributedGradientTape(tf.GradientTape(), num_groups=1)
    found.append(caught[0].category.__name__)
    return [text.split(":")[0] for text in found]


CASES = {
    refusals: [
        "ValueError", "ValueError", "ValueError", "ValueError", "ValueError", "ValueError", "NotInThisVersionError",
        "DeprecationWarning",
    ],
}  # fmt: skip

test_every_case = tensorflow_cases.test(CASES)
