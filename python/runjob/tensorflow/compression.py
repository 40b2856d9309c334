"""The form in which a tensor is sent. A compressor is a class with two static methods; users may write their own."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from ..compression import Compressor, NoneCompressor


class _CastBack(Compressor):
    @staticmethod
    def decompress(tensor: Any, ctx: Any) -> Any:
        """`tensor` in its own dtype."""
        return tensor if ctx is None else tf.cast(tensor, ctx)


class FP16Compressor(_CastBack):
    """Sends float32 and float64 as float16 and restores their dtype. Sends other tensors unchanged."""

    @staticmethod
    def compress(tensor: Any) -> tuple[Any, Any]:
        """`tensor` as float16, and its dtype."""
        return _narrowed(tensor, tf.float16)


class BF16Compressor(_CastBack):
    """Sends float32 and float64 as bfloat16, which has the range of float32, and restores their dtype. Sends other
    tensors unchanged.
    """

    @staticmethod
    def compress(tensor: Any) -> tuple[Any, Any]:
        """`tensor` as bfloat16, and its dtype."""
        return _narrowed(tensor, tf.bfloat16)


class Compression:
    """The compressors to choose from."""

    none = NoneCompressor
    fp16 = FP16Compressor
    bf16 = BF16Compressor


def _narrowed(tensor: Any, dtype: Any) -> tuple[Any, Any]:
    tensor = tf.convert_to_tensor(tensor)
    if tensor.dtype not in (tf.float32, tf.float64):
        return tensor, None
    return tf.cast(tensor, dtype), tensor.dtype


#: runjob_compression of runjob.h: see compression.split().
NATIVE: dict[type[Compressor], int] = {NoneCompressor: 0, FP16Compressor: 1, BF16Compressor: 2}
