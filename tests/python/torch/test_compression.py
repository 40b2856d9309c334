"""python/runjob/torch/compression.py."""

import pytest
import torch

import runjob.torch as hvd
from runjob.torch.compression import Compression, Compressor, FP16Compressor


def test_none_gives_the_tensor_itself():
    tensor = torch.ones(2)
    sent, context = Compression.none.compress(tensor)
    assert sent is tensor
    assert Compression.none.decompress(sent, context) is tensor


@pytest.mark.parametrize("compressor, half", [(Compression.fp16, torch.float16), (Compression.bf16, torch.bfloat16)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_floats_are_halved_and_get_their_type_back(compressor, half, dtype):
    tensor = torch.tensor([1.5, -2.0], dtype=dtype)
    sent, context = compressor.compress(tensor)
    assert sent.dtype == half
    back = compressor.decompress(sent, context)
    assert back.dtype == dtype and torch.equal(back, tensor)


@pytest.mark.parametrize("compressor", [Compression.fp16, Compression.bf16])
def test_integers_are_left_alone(compressor):
    tensor = torch.tensor([70000])
    assert compressor.decompress(*compressor.compress(tensor)) is tensor


class Counting(FP16Compressor):
    """A user's own."""

    calls = 0

    @staticmethod
    def compress(tensor):
        Counting.calls += 1
        return FP16Compressor.compress(tensor)


def _compressed_on_the_way():
    hvd.init()
    fine = torch.tensor([1 + 2**-9, 1 + 2**-12, 70000.0], dtype=torch.float64, requires_grad=True)
    seen = []
    for compressor in (Compression.none, Compression.fp16, Compression.bf16, Counting):
        reduced = hvd.allreduce(fine, compression=compressor)
        assert reduced.dtype == torch.float64
        (gradient,) = torch.autograd.grad((reduced * torch.tensor([1 + 2**-12, 1, 1])).sum(), fine)
        seen.append((reduced.tolist(), gradient.tolist()))
        (grouped,) = hvd.grouped_allreduce([fine], compression=compressor)
        assert grouped.tolist() == reduced.tolist()
    return seen, Counting.calls, hvd.allreduce(torch.tensor([2**20 + 1]), op=hvd.Sum, compression=Compression.fp16).item()


def test_values_are_rounded_on_the_way_and_gradients_too(call_ranks):
    infinity = float("inf")
    fp16 = ([1 + 2**-9, 1.0, infinity], [1.0, 1.0, 1.0])
    expected = [
        ([1 + 2**-9, 1 + 2**-12, 70000.0], [1 + 2**-12, 1.0, 1.0]),
        fp16,
        ([1.0, 1.0, 70144.0], [1.0, 1.0, 1.0]),
        fp16,
    ]
    assert call_ranks(_compressed_on_the_way, 2) == [(expected, 2, 2 * (2**20 + 1))] * 2


def test_the_interface_says_what_to_define():
    with pytest.raises(NotImplementedError, match=r"defines compress\(tensor\)"):
        Compressor.compress(torch.ones(1))
    with pytest.raises(NotImplementedError, match=r"defines decompress\(tensor, context\)"):
        Compressor.decompress(torch.ones(1), None)
