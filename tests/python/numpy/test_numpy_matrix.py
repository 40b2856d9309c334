"""Every collective of runjob.numpy against plain NumPy, on 1 to 8 ranks, through shared memory and through Gloo."""

import numpy
import pytest

import collective_cases


def make(array, dtype, layout):
    import ml_dtypes

    array = numpy.array(array, dtype=ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    if layout == "transposed" and array.ndim >= 2:
        return numpy.asfortranarray(array)
    if layout == "strided" and array.ndim >= 1:
        wide = numpy.zeros((*array.shape[:-1], 2 * array.shape[-1]), dtype=array.dtype)
        wide[..., ::2] = array
        return wide[..., ::2]
    return array


def to_numpy(array):
    return array.astype(numpy.float32) if array.dtype.name == "bfloat16" else array


def run_all():
    import runjob.numpy as hvd

    return collective_cases.run(hvd, collective_cases.Framework(list(collective_cases.DTYPES), make, to_numpy))


@pytest.mark.parametrize("np", [1, 2, 3, pytest.param(8, marks=pytest.mark.thorough)])
def test_every_collective_agrees_with_plain_numpy(call_ranks, np):
    assert call_ranks(run_all, np) == [np] * np


def test_every_collective_agrees_with_plain_numpy_through_gloo(call_ranks, monkeypatch):
    monkeypatch.setenv("RUNJOB_SHARED_MEMORY", "0")
    assert call_ranks(run_all, 3) == [3] * 3
