"""The form in which values are sent: the parts that all frameworks share. A compressor is a class with two static
methods; users may write their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Compressor:
    """The interface of a compressor. compress() returns the values to send and a context, and decompress() takes both."""

    @staticmethod
    def compress(tensor: Any) -> tuple[Any, Any]:
        """The values to send instead of `tensor`, and the context that decompress() needs."""
        raise NotImplementedError("a Compressor defines compress(tensor) -> (tensor, context)")

    @staticmethod
    def decompress(tensor: Any, ctx: Any) -> Any:
        """The values of `tensor`, which was received, in the form that compress() was given."""
        raise NotImplementedError("a Compressor defines decompress(tensor, context) -> tensor")


class NoneCompressor(Compressor):
    """Sends tensors as they are."""

    @staticmethod
    def compress(tensor: Any) -> tuple[Any, Any]:
        """`tensor` itself."""
        return tensor, None

    @staticmethod
    def decompress(tensor: Any, ctx: Any) -> Any:
        """`tensor` itself."""
        return tensor


def split(compressor: type[Compressor], native: Mapping[type[Compressor], int]) -> tuple[type[Compressor], int]:
    """Divides the work of a compressor, which may be the user's: returns the compressor that Python applies, and the
    part that the library does.

    native  runjob_compression of runjob.h, for the compressors whose work the library can do as part of the operation.
    """
    number = native.get(compressor)
    return (compressor, 0) if number is None else (NoneCompressor, number)
