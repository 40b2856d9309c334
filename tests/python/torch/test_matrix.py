"""Every collective of runjob.torch against NumPy, on 1 to 8 ranks, through shared memory and through Gloo."""

import numpy
import pytest
import torch

import collective_cases


def to_torch(array, dtype, layout):
    tensor = torch.from_numpy(numpy.ascontiguousarray(array)).reshape(array.shape).to(getattr(torch, dtype)).clone()
    if layout == "transposed" and tensor.dim() >= 2:
        return tensor.transpose(0, -1).contiguous().transpose(0, -1)
    if layout == "strided" and tensor.dim() >= 1:
        wide = torch.zeros((*tensor.shape[:-1], 2 * tensor.shape[-1]), dtype=tensor.dtype)
        wide[..., ::2] = tensor
        return wide[..., ::2]
    return tensor


def to_numpy(tensor):
    return (tensor.float() if tensor.dtype is torch.bfloat16 else tensor).numpy()


def run_all():
    import runjob.torch as hvd

    dtypes = [dtype for dtype in collective_cases.DTYPES if dtype != "uint16" or hasattr(torch, "uint16")]
    return collective_cases.run(hvd, collective_cases.Framework(dtypes, to_torch, to_numpy))


@pytest.mark.parametrize("np", [1, 2, 3, pytest.param(8, marks=pytest.mark.thorough)])
def test_every_collective_agrees_with_numpy(call_ranks, np):
    assert call_ranks(run_all, np) == [np] * np


@pytest.mark.thorough
def test_every_collective_agrees_with_numpy_through_gloo(call_ranks, monkeypatch):
    monkeypatch.setenv("RUNJOB_SHARED_MEMORY", "0")
    assert call_ranks(run_all, 3) == [3] * 3
