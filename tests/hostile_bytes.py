"""Bytes like those of a hostile host, for tests: what an honest one sends, with changes from a seed."""

from __future__ import annotations

import random

#: What goes into the place of some bytes: nothing, what fields hold at most, and what begins nested documents.
_NEW = [b"", b"\xff", b"\xff" * 4, b"\x7f" + b"\xff" * 7, bytes(8), b"[", b'{"', b'"', b"-1", b"1e999", b"\x5f", b"\x81", b"\x9b", b"null"]


def changed(data: bytes, seed: int) -> bytes:
    """`data` with a few bytes changed, doubled, exchanged or cut out."""
    chance = random.Random(seed)
    result = bytearray(data)
    for _ in range(chance.randrange(1, 5)):
        begin = chance.randrange(len(result) + 1)
        end = begin + chance.choice([0, 1, 2, 8, 40])
        result[begin:end] = chance.choice([*_NEW, chance.randbytes(3), bytes(result[begin:end]) * 2])
    return bytes(result)
