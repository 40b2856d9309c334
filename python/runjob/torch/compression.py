"""What a gradient looks like on the wire. A compressor is a class with two static methods; users may write their own."""

from __future__ import annotations

from typing import Any

import torch


class Compressor:
    """The interface: compress() gives what is sent and a context, decompress() takes both back."""

    @staticmethod
    def compress(tensor: torch.Tensor) -> tuple[torch.Tensor, Any]:
        raise NotImplementedError("a Compressor defines compress(tensor) -> (tensor, context)")

    @staticmethod
    def decompress(tensor: torch.Tensor, ctx: Any) -> torch.Tensor:
        raise NotImplementedError("a Compressor defines decompress(tensor, context) -> tensor")


class NoneCompressor(Compressor):
    """Sends tensors as they are."""

    @staticmethod
    def compress(tensor: torch.Tensor) -> tuple[torch.Tensor, Any]:
        return tensor, None

    @staticmethod
    def decompress(tensor: torch.Tensor, ctx: Any) -> torch.Tensor:
        return tensor


class FP16Compressor(Compressor):
    """Sends floating-point tensors as float16 and gives them back in their own type; others as they are."""

    @staticmethod
    def compress(tensor: torch.Tensor) -> tuple[torch.Tensor, Any]:
        if not tensor.is_floating_point():
            return tensor, None
        return tensor.to(torch.float16), tensor.dtype

    @staticmethod
    def decompress(tensor: torch.Tensor, ctx: Any) -> torch.Tensor:
        return tensor if ctx is None else tensor.to(ctx)


class BF16Compressor(Compressor):
    """Sends floating-point tensors as bfloat16, which has the range of float32, and gives them back in their own type."""

    @staticmethod
    def compress(tensor: torch.Tensor) -> tuple[torch.Tensor, Any]:
        if not tensor.is_floating_point():
            return tensor, None
        return tensor.to(torch.bfloat16), tensor.dtype

    @staticmethod
    def decompress(tensor: torch.Tensor, ctx: Any) -> torch.Tensor:
        return tensor if ctx is None else tensor.to(ctx)


class Compression:
    """The compressors to choose from."""

    none = NoneCompressor
    fp16 = FP16Compressor
    bf16 = BF16Compressor


#: runjob_compression of runjob.h, for the compressors whose work the library can do on the way, without tensors in between.
NATIVE = {NoneCompressor: 0, FP16Compressor: 1, BF16Compressor: 2}


def split(compressor: type) -> tuple[type, int]:
    """What is left to do here for such a compressor, which may be the user's, and the library's part of it."""
    native = NATIVE.get(compressor)
    return (compressor, 0) if native is None else (NoneCompressor, native)
