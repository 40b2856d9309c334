"""What values look like on the wire: what is the same for all frameworks. A compressor is a class with two static methods; users may
write their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Compressor:
    """The interface: compress() gives what is sent and a context, decompress() takes both back."""

    @staticmethod
    def compress(tensor: Any) -> tuple[Any, Any]:
        """What is sent instead of `tensor`, and what decompress() needs to know of it."""
        raise NotImplementedError("a Compressor defines compress(tensor) -> (tensor, context)")

    @staticmethod
    def decompress(tensor: Any, ctx: Any) -> Any:
        """The values of `tensor`, which has come, as compress() was given them."""
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
    """What is left to do in Python for a compressor, which may be the user's, and the library's part of it.

    native  runjob_compression of runjob.h, for the compressors whose work the library can do on the way.
    """
    number = native.get(compressor)
    return (compressor, 0) if number is None else (NoneCompressor, number)
