"""The form in which a gradient is sent. A compressor is a class with two static methods; users may write their own."""

from __future__ import annotations

from typing import Any

import torch

from ..compression import Compressor, NoneCompressor


class FP16Compressor(Compressor):
    """Sends floating-point tensors as float16 and restores their dtype. Sends other tensors unchanged."""

    @staticmethod
    def compress(tensor: torch.Tensor) -> tuple[torch.Tensor, Any]:
        """`tensor` as float16, and its dtype."""
        if not tensor.is_floating_point():
            return tensor, None
        return tensor.to(torch.float16), tensor.dtype

    @staticmethod
    def decompress(tensor: torch.Tensor, ctx: Any) -> torch.Tensor:
        """`tensor` in its own dtype."""
        return tensor if ctx is None else tensor.to(ctx)


class BF16Compressor(Compressor):
    """Sends floating-point tensors as bfloat16, which has the range of float32, and restores their dtype. Sends other
    tensors unchanged.
    """

    @staticmethod
    def compress(tensor: torch.Tensor) -> tuple[torch.Tensor, Any]:
        """`tensor` as bfloat16, and its dtype."""
        if not tensor.is_floating_point():
            return tensor, None
        return tensor.to(torch.bfloat16), tensor.dtype

    @staticmethod
    def decompress(tensor: torch.Tensor, ctx: Any) -> torch.Tensor:
        """`tensor` in its own dtype."""
        return tensor if ctx is None else tensor.to(ctx)


class Compression:
    """The compressors to choose from."""

    none = NoneCompressor
    fp16 = FP16Compressor
    bf16 = BF16Compressor


#: runjob_compression of runjob.h: see compression.split().
NATIVE: dict[type[Compressor], int] = {NoneCompressor: 0, FP16Compressor: 1, BF16Compressor: 2}

__all__ = ["NATIVE", "BF16Compressor", "Compression", "Compressor", "FP16Compressor", "NoneCompressor"]
