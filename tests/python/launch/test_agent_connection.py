"""python/runjob/launch/agent_connection.py: how it reads an answer. tests/python/mpi has it beside the launcher's own."""

import pytest
from hostile_bytes import changed

from runjob.launch.agent_connection import _blobs


def head(major, count):
    return bytes([major | 27]) + count.to_bytes(8, "big")


def cbor(blobs):
    return head(0x80, len(blobs)) + b"".join(head(0x40, len(blob)) + blob for blob in blobs)


@pytest.mark.parametrize("count", [0, 5, 23, 24, 255, 256, 70_000])
def test_blobs_are_read_as_they_were_written(count):
    blobs = [bytes([i % 256]) * (i % 7) for i in range(count)]
    assert _blobs(cbor(blobs)) == blobs
    assert _blobs(cbor([b"x" * count])) == [b"x" * count]


def test_short_forms_are_read_too():
    assert _blobs(b"\x82\x41a\x58\x02bc") == [b"a", b"bc"]
    with pytest.raises(ValueError, match="not a CBOR array of byte strings"):
        _blobs(b"\xa0")


def test_any_bytes_are_blobs_or_an_error():
    honest = cbor([b"one", b"", b"x" * 300])
    for seed in range(3000):
        data = changed(honest, seed)
        try:
            blobs = _blobs(data)
        except ValueError as error:
            assert "not a CBOR array of byte strings" in str(error)
        else:
            assert _blobs(cbor(blobs)) == blobs and sum(map(len, blobs)) < len(data)
