"""python/runjob/torch/elastic/tensor_copies.py, on the CPU."""

import pytest
import torch

from runjob.elastic.array_kinds import kind_of
from runjob.torch.elastic.tensor_copies import TorchTensors


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.bfloat16, torch.float64, torch.complex64])
@pytest.mark.parametrize("shape", [(), (0, 2), (3, 2)])
def test_every_dtype_and_shape_is_copied(dtype, shape):
    value = torch.ones(shape).to(dtype)
    kind = kind_of(value)
    assert isinstance(kind, TorchTensors) and not kind.is_far(value)
    form = kind.form(value)
    copy = kind.copy_in(form, memoryview(bytearray(form.nbytes)))
    kind.save(copy, value)
    assert torch.equal(copy, value) and copy.dtype == dtype
    assert kind.dtype_named(kind.dtype_name(dtype)) is dtype
    value.zero_()
    assert torch.equal(kind.restore(value, copy), torch.ones(shape).to(dtype)) and torch.equal(kind.new(copy), copy)


def test_a_name_that_is_no_dtype():
    with pytest.raises((TypeError, AttributeError)):
        TorchTensors().dtype_named("nn")


def test_views_are_copied_and_restored():
    value = torch.arange(6.0).reshape(2, 3).t().requires_grad_()
    kind = kind_of(value)
    copy = kind.copy_in(kind.form(value), memoryview(bytearray(value.nbytes)))
    kind.save(copy, value)
    assert torch.equal(kind.restore(value, copy + 1), torch.arange(1.0, 7.0).reshape(2, 3).t()) and not copy.requires_grad


def test_tensors_without_dense_values_are_plain_objects():
    assert kind_of(torch.ones(2).to_sparse()) is None and kind_of(torch.ones(2, device="meta")) is None
    assert kind_of(torch.nn.Parameter(torch.ones(2))) is None
