"""python/runjob/reduce_ops.py: op= and the deprecated average=."""

import re

import pytest
from ranks import ROOT

from runjob import reduce_ops


def test_numbers_are_those_of_the_header():
    header = (ROOT / "runtime" / "include" / "runjob" / "runjob.h").read_text()
    block = header[header.index("typedef enum runjob_reduce_op") : header.index("} runjob_reduce_op")]
    for name, value in re.findall(r"RUNJOB_(\w+) = (\d+)", block):
        assert getattr(reduce_ops, name.title()) == int(value)


def test_the_default_is_average():
    assert reduce_ops.resolve(None, None) == reduce_ops.Average


@pytest.mark.parametrize("op", [reduce_ops.Average, reduce_ops.Sum, reduce_ops.Adasum, reduce_ops.Min, reduce_ops.Max, reduce_ops.Product])
def test_an_op_is_itself(op):
    assert reduce_ops.resolve(op, None) == op


@pytest.mark.parametrize("average, op", [(True, reduce_ops.Average), (False, reduce_ops.Sum)])
def test_average_still_works_and_warns(average, op):
    with pytest.warns(DeprecationWarning, match="average= is deprecated"):
        assert reduce_ops.resolve(None, average) == op


def test_both_are_refused():
    with pytest.raises(ValueError, match="op= and average= were both given"):
        reduce_ops.resolve(reduce_ops.Sum, False)


def test_what_adasum_takes():
    reduce_ops.check_adasum("allreduce", "bfloat16")
    with pytest.raises(RuntimeError, match="allreduce: op=Adasum takes floating-point tensors, not uint8"):
        reduce_ops.check_adasum("allreduce", "uint8")
    reduce_ops.check_scattered(reduce_ops.Sum)
    with pytest.raises(RuntimeError, match="reducescatter does not take op=Adasum"):
        reduce_ops.check_scattered(reduce_ops.Adasum)


@pytest.mark.parametrize("op", [6, -1, "sum"])
def test_another_op_is_named(op):
    with pytest.raises(ValueError, match=f"op={op!r} is no reduction"):
        reduce_ops.resolve(op, None)
