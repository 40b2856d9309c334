"""Adasum as it is defined, of whole vectors in float64; and the inputs of tests of it, by kind. Ranks on other hosts import it too."""

import numpy

KINDS = ("random", "parallel", "orthogonal", "scaled", "zero", "wide")
COUNT = 1003


def _pair(a, m, b, n):
    """The vector that stands for the m ranks of a and the n ranks of b."""
    product, aa, bb = a @ b, a @ a, b @ b
    of_a = 1 if aa < 2.0**-511 else 1 - m / (m + n) * product / aa
    of_b = 1 if bb < 2.0**-511 else 1 - n / (m + n) * product / bb
    return of_a * a + of_b * b


def tree(vectors):
    """The Adasum of the ranks' arrays, in float64."""
    shape = numpy.shape(vectors[0])
    vectors = [numpy.asarray(vector, numpy.float64).ravel() for vector in vectors]
    ranks = [1] * len(vectors)
    power = 1
    while 2 * power <= len(vectors):
        power *= 2

    def join(to, source):
        vectors[to] = _pair(vectors[to], ranks[to], vectors[source], ranks[source])
        ranks[to] += ranks[source]

    for rank in range(power, len(vectors)):
        join(rank - power, rank)
    distance = 1
    while distance < power:
        for rank in range(0, power, 2 * distance):
            join(rank, rank + distance)
        distance *= 2
    return vectors[0].reshape(shape)


def inputs(kind, size, tiny, most, count=COUNT):
    """The arrays of all ranks, in float64. `tiny` and `most`: the smallest normal and the largest number of the dtype."""
    random = numpy.random.default_rng(size)
    arrays = [random.normal(size=count) for _ in range(size)]
    if kind == "parallel":
        return [arrays[0] * (0.5 + rank) for rank in range(size)]
    if kind == "orthogonal":
        return [numpy.where(numpy.arange(count) % size == rank, arrays[0], 0) for rank in range(size)]
    if kind == "scaled":
        return [array * 4.0 ** (rank - 2) for rank, array in enumerate(arrays)]
    if kind == "zero":
        return [array * (rank % 2) for rank, array in enumerate(arrays)]
    if kind == "wide":  # up to a norm whose square is finite
        exponents = random.uniform(numpy.log(tiny), numpy.log(most / count) / 2, size=(size, count))
        return list(numpy.exp(exponents) * numpy.sign(arrays))
    return arrays


def error(result, expected):
    """|result - expected| / |expected|; |result| where that is zero."""
    result = numpy.asarray(result, numpy.float64).ravel()
    expected = numpy.ravel(expected)
    scale = numpy.abs(expected).max() or 1.0  # squares could be too large, or too small
    norm = numpy.linalg.norm(expected / scale)
    return numpy.linalg.norm((result - expected) / scale) / (norm or 1.0)
