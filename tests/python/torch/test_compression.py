"""python/runjob/torch/compression.py."""

import pytest
import torch

from runjob.torch.compression import Compression, Compressor


def test_none_gives_the_tensor_itself():
    tensor = torch.ones(2)
    sent, context = Compression.none.compress(tensor)
    assert sent is tensor
    assert Compression.none.decompress(sent, context) is tensor


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_fp16_halves_floats_and_gives_their_type_back(dtype):
    tensor = torch.tensor([1.5, -2.0], dtype=dtype)
    sent, context = Compression.fp16.compress(tensor)
    assert sent.dtype == torch.float16
    back = Compression.fp16.decompress(sent, context)
    assert back.dtype == dtype and torch.equal(back, tensor)


def test_fp16_leaves_integers_alone():
    tensor = torch.tensor([70000])
    assert Compression.fp16.decompress(*Compression.fp16.compress(tensor)) is tensor


def test_the_interface_says_what_to_define():
    with pytest.raises(NotImplementedError, match=r"defines compress\(tensor\)"):
        Compressor.compress(torch.ones(1))
    with pytest.raises(NotImplementedError, match=r"defines decompress\(tensor, context\)"):
        Compressor.decompress(torch.ones(1), None)
