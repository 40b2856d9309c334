"""op=Adasum of real ranks, beside a tree in float64: every dtype, and inputs of every kind."""

import numpy
import pytest
from adasum_tree import KINDS, error, inputs, tree

import runjob.numpy as hvd


def _errors():
    """In units of the dtype's epsilon, the largest one first, with its dtype and kind."""
    hvd.init()
    found = []
    for dtype in (numpy.float16, numpy.float32, numpy.float64):
        limits = numpy.finfo(dtype)
        for kind in KINDS:
            arrays = [array.astype(dtype) for array in inputs(kind, hvd.size(), float(limits.tiny), float(limits.max))]
            result = hvd.allreduce(arrays[hvd.rank()], op=hvd.Adasum)
            assert result.dtype == dtype
            found.append((error(result, tree(arrays)) / float(limits.eps), limits.dtype.name, kind))
    return max(found)


@pytest.mark.parametrize("np", [0, 2, 3, 4])
def test_every_dtype_and_kind(call_ranks, np):
    for largest in call_ranks(_errors, np):
        assert largest[0] < 100, largest


def _ways():
    """The same values in all ways in which an allreduce is called, and what is refused."""
    hvd.init()
    rank = hvd.rank()
    array = inputs("random", 2, 1e-38, 1e38)[rank].astype(numpy.float32)
    result = hvd.allreduce(array, op=hvd.Adasum)
    ints = numpy.arange(3)
    group = hvd.grouped_allreduce([array[:7], array, array.astype(numpy.float64)], op=hvd.Adasum)
    in_place = array.copy()
    same = [
        hvd.synchronize(hvd.allreduce_async(array, op=hvd.Adasum, name="a")), hvd.allreduce_(in_place, op=hvd.Adasum), group[1],
        hvd.allreduce(array, op=hvd.Adasum, prescale_factor=4.0, postscale_factor=0.25),
    ]  # fmt: skip
    bits = [each.tobytes() == result.tobytes() for each in same]
    half = hvd.allreduce(array, op=hvd.Adasum, compression=hvd.Compression.fp16)
    bad = array.copy()
    bad[5] = numpy.inf if rank else 1.0
    texts = []
    for wrong in (
        lambda: hvd.allreduce(ints, op=hvd.Adasum),
        lambda: hvd.grouped_allreduce([array, ints > 1], op=hvd.Adasum),
        lambda: hvd.reducescatter(array, op=hvd.Adasum),
        lambda: hvd.grouped_reducescatter([array], op=hvd.Adasum),
    ):
        try:
            wrong()
        except RuntimeError as refused:
            texts.append(str(refused))
    near = error(half, result) < 1e-3
    return bits, near, bool(numpy.isnan(hvd.allreduce(bad, op=hvd.Adasum)).all()), texts


def test_every_way_of_calling_it(call_ranks):
    for bits, near, is_nan, texts in call_ranks(_ways, 2):
        assert bits == [True] * 4
        assert near and is_nan
        assert texts == [
            "allreduce: op=Adasum takes floating-point tensors, not int64; convert the tensor to float32",
            "grouped_allreduce: op=Adasum takes floating-point tensors, not bool; convert the tensor to float32",
            "reducescatter does not take op=Adasum; use allreduce, or another op",
            "reducescatter does not take op=Adasum; use allreduce, or another op",
        ]
