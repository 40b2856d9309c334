"""The launcher's rendezvous, for an exchange among some of the job's ranks. docs/developers/rendezvous.md describes the
protocol.
"""

from __future__ import annotations

import http.client
import json
import socket


class AgentConnection:
    """The rendezvous of a job's agent, for an exchange among some of the job's ranks.

    address  the value of RUNJOB_RENDEZVOUS: `unix:` and a path.
    """

    def __init__(self, address: str, rank: int) -> None:
        self._path = address[len("unix:") :]
        self._rank = rank

    def gather(self, name: str, blob: bytes, index: int, count: int, timeout: float) -> list[bytes]:
        """The blobs of all `count` ranks that take part, by index. Errors  TimeoutError with the text of the
        rendezvous; OSError.
        """
        target = f"/v1/gather/{name}?wait={timeout:g}&index={index}&count={count}"
        head = f"POST {target} HTTP/1.1\r\nHost: localhost\r\nRunjob-Rank: {self._rank}\r\nContent-Length: {len(blob)}\r\n\r\n"
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.connect(self._path)
            connection.sendall(head.encode() + blob)
            response = http.client.HTTPResponse(connection)
            response.begin()
            body = response.read()
        if response.status == 408:
            raise TimeoutError(json.loads(body)["error"])
        if response.status != 200:
            raise OSError(f"the rendezvous answered {response.status} {body.decode(errors='replace')} to {target}")
        return _blobs(body)


_NO_BLOBS = "the answer to a gather is not a CBOR array of byte strings"


def _blobs(cbor: bytes) -> list[bytes]:
    """The byte strings of an encoded array. Errors  ValueError for malformed bytes."""
    count, place = _cbor_count(cbor, 0, 0x80)
    blobs = []
    for _ in range(count):
        length, place = _cbor_count(cbor, place, 0x40)
        if length > len(cbor) - place:
            raise ValueError(_NO_BLOBS)
        blobs.append(cbor[place : place + length])
        place += length
    if place != len(cbor):
        raise ValueError(_NO_BLOBS)
    return blobs


def _cbor_count(cbor: bytes, place: int, major: int) -> tuple[int, int]:
    """The number in the head at `place`, and the place at which the head ends."""
    short = cbor[place] - major if place < len(cbor) else -1
    if 0 <= short < 24:
        return short, place + 1
    size = 1 << (short - 24) if 24 <= short <= 27 else len(cbor)
    if place + 1 + size > len(cbor):
        raise ValueError(_NO_BLOBS)
    return int.from_bytes(cbor[place + 1 : place + 1 + size], "big"), place + 1 + size
