"""python/runjob/tensorflow/keras/values.py: numbers and arrays, outside of functions."""

import tensorflow_cases


def values():
    import runjob.tensorflow.keras as hvd

    rank = hvd.rank()
    found = [
        hvd.allreduce(float(rank)),
        hvd.allreduce([1, 2 + rank], op=hvd.Sum, name="values"),
        hvd.allreduce([1.0], prescale_factor=3.0, op=hvd.Sum),
        hvd.allgather([rank]),
        hvd.broadcast([rank, 7], 1),
        hvd.reducescatter([1.0, 3.0], op=hvd.Sum),
    ]
    try:
        hvd.allreduce(1.0, op=hvd.Max)
    except (AttributeError, ValueError):
        found.append(found[0] * 0)
    return [value.tolist() for value in found]


CASES = {values: lambda rank: [0.5, [2, 5], [6], [0, 1], [1, 7], [[2.0], [6.0]][rank], 0.0]}

test_every_case = tensorflow_cases.test(CASES)
