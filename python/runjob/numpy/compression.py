"""The form in which an array is sent. A compressor is a class with two static methods; users may write their own."""

from __future__ import annotations

from typing import Any

import numpy

from ..compression import Compressor, NoneCompressor
from ..exceptions import UnavailableError
from .arrays import NDArrayAny


class FP16Compressor(Compressor):
    """Sends float32 and float64 as float16 and restores their dtype. Sends other arrays unchanged."""

    @staticmethod
    def compress(tensor: Any) -> tuple[NDArrayAny, Any]:
        """`tensor` as float16, and its dtype."""
        return _narrowed(tensor, numpy.dtype(numpy.float16))

    @staticmethod
    def decompress(tensor: NDArrayAny, ctx: Any) -> NDArrayAny:
        """`tensor` in its own dtype."""
        return tensor if ctx is None else tensor.astype(ctx)


class BF16Compressor(Compressor):
    """Sends float32 and float64 as bfloat16, which has the range of float32, and restores their dtype. Sends other
    arrays unchanged.

    Allreduces compress in the library and need no package. The other operations need the package ml_dtypes.
    """

    @staticmethod
    def compress(tensor: Any) -> tuple[NDArrayAny, Any]:
        """`tensor` as bfloat16, and its dtype. Errors  UnavailableError without ml_dtypes."""
        try:
            import ml_dtypes
        except ImportError:
            raise UnavailableError(
                "Compression.bf16 of reducescatter needs NumPy's bfloat16: install the package ml_dtypes, or use Compression.fp16"
            ) from None
        return _narrowed(tensor, numpy.dtype(ml_dtypes.bfloat16))

    @staticmethod
    def decompress(tensor: NDArrayAny, ctx: Any) -> NDArrayAny:
        """`tensor` in its own dtype."""
        return tensor if ctx is None else tensor.astype(ctx)


class Compression:
    """The compressors to choose from."""

    none = NoneCompressor
    fp16 = FP16Compressor
    bf16 = BF16Compressor


def _narrowed(tensor: Any, dtype: numpy.dtype[Any]) -> tuple[NDArrayAny, Any]:
    array = numpy.asarray(tensor)
    if array.dtype not in (numpy.float32, numpy.float64):
        return array, None
    return array.astype(dtype), array.dtype


#: runjob_compression of runjob.h: see compression.split().
NATIVE: dict[type[Compressor], int] = {NoneCompressor: 0, FP16Compressor: 1, BF16Compressor: 2}
