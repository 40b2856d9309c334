"""python/runjob/calls.py: what is handed to the library. What comes of it is tested with each framework."""

import ctypes

import pytest
import torch

from runjob._library import Tensor
from runjob.calls import ALLREDUCE, Calls, Reduction
from runjob.process_sets import ProcessSet, global_process_set
from runjob.reduce_ops import Sum
from runjob.torch.tensors import Tensors

calls = Calls(Tensors())
reduction = Reduction(Sum, 0.5, 2.0, global_process_set, native=1)


def described(call):
    return Tensor.from_address(call.operation.tensors)


def shape_of(tensor):
    return (ctypes.c_int64 * tensor.ndim).from_address(tensor.shape)


def test_an_allreduce_in_place_hands_over_one_array():
    array = torch.ones(2, 3)
    call = calls.allreduce(array, "a", reduction, in_place=True)
    operation, tensor = call.operation, described(call)
    assert (tensor.input, tensor.output, list(shape_of(tensor)), tensor.dtype) == (array.data_ptr(), array.data_ptr(), [2, 3], 7)
    assert (operation.op, operation.prescale, operation.postscale, operation.compression) == (Sum, 0.5, 2.0, 1)
    assert (operation.size, operation.count, operation.is_group, operation.process_set) == (ctypes.sizeof(operation), 1, 0, 0)
    assert (call.kind, call.name, call.result(0) is array) == (ALLREDUCE, "a", True)


def test_an_allreduce_has_an_output_of_its_own():
    array = torch.ones(3)
    call = calls.allreduce(array, None, reduction)
    tensor = described(call)
    assert tensor.input == array.data_ptr() != tensor.output
    assert call.result(0).shape == (3,) and call.result(0).data_ptr() == tensor.output


def test_a_broadcast_works_on_a_copy_unless_in_place():
    array = torch.ones(3)
    assert described(calls.broadcast(array, 0, None, global_process_set)).output != array.data_ptr()
    assert described(calls.broadcast(array, 0, None, global_process_set, in_place=True)).output == array.data_ptr()


@pytest.mark.parametrize("splits", [[1, 2], (1, 2), torch.tensor([1, 2]), [torch.tensor(1), 2]])
def test_splits_may_be_any_integers(splits):
    call = calls.alltoall(torch.ones(3), splits, None, global_process_set)
    assert call.operation.nsplits == 2
    assert list((ctypes.c_int64 * 2).from_address(call.operation.splits)) == [1, 2]


@pytest.mark.parametrize("splits", [[], [1.0, 2.0], [True, 2], torch.tensor([1.5]), ["1"]])
def test_splits_that_are_no_integers_are_refused(splits):
    with pytest.raises(ValueError, match="alltoall: splits must be one integer for each rank"):
        calls.alltoall(torch.ones(3), splits, None, global_process_set)


def test_a_set_that_is_not_registered_is_refused_before_anything_is_submitted():
    with pytest.raises(ValueError, match="is not registered"):
        calls.allreduce(torch.ones(3), None, reduction._replace(process_set=ProcessSet([0])))
