"""A rendezvous for one process, which gets its answers by a function. Ranks that can exchange bytes already, over MPI
for example, use it to join a job of their own. No other user can reach it: it is a Unix socket in a folder that only
this user may enter, and exists during one init().

docs/developers/rendezvous.md describes the protocol. init() needs the join, which is answered here, and gathers.
"""

from __future__ import annotations

import http.client
import http.server
import json
import os
import socket
import socketserver
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

#: The time that the relay waits for a request before it checks whether init() has ended, in seconds.
_PATIENCE = 0.02

#: Sends each rank the blobs of all, by rank. Errors  TimeoutError with a text that names the missing ranks.
Exchange = Callable[[bytes], Sequence[bytes]]


class Place(NamedTuple):
    """The place of this process in the job to be joined. `hosts` has for each rank the index of its host in `hostnames`."""

    rank: int
    hosts: list[int]
    hostnames: list[str]
    start_timeout_seconds: float

    def join_reply(self) -> dict[str, Any]:
        """The answer to a join."""
        mine = [rank for rank, host in enumerate(self.hosts) if host == self.hosts[self.rank]]
        local_rank = mine.index(self.rank)
        counts = [self.hosts.count(host) for host in range(len(self.hostnames))]
        across = [host for host, count in enumerate(counts) if count > local_rank]
        return {
            "rank": self.rank, "size": len(self.hosts), "local_rank": local_rank, "local_size": len(mine),
            "cross_rank": across.index(self.hosts[self.rank]), "cross_size": len(across), "generation": 0,
            "hostname": self.hostnames[self.hosts[self.rank]], "start_timeout_seconds": self.start_timeout_seconds,
            "topology": {"hosts": [[host, 0, 1] for host in self.hosts], "hostnames": self.hostnames},
        }  # fmt: skip


class Relay(socketserver.UnixStreamServer):
    """Threads  the one that calls serve_until(), which also calls `exchange`."""

    def __init__(self, path: str, place: Place, exchange: Exchange) -> None:
        super().__init__(path, _Handler)
        self.place = place
        self.exchange = exchange
        self.timeout = _PATIENCE

    def serve_until(self, ended: threading.Event) -> None:
        """Answers requests until `ended` is set, by the thread that makes them. An exception of the exchange, such as
        an interruption, also ends it.
        """
        while not ended.is_set():
            self.handle_request()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Does nothing for a broken connection, because the other side notices it."""


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Relay

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path == "/v1/join":
            return self._answer(200, "application/json", json.dumps(self.server.place.join_reply()).encode())
        if not self.path.startswith("/v1/gather/"):
            return self._refuse(404, "this rendezvous is for joining only")
        try:
            blobs = self.server.exchange(body)
        except TimeoutError as error:
            return self._refuse(408, str(error))
        except Exception as error:  # the exchange may raise any exception
            return self._refuse(503, f"{type(error).__name__}: {error}")
        return self._answer(200, "application/cbor", _cbor(blobs))

    def _refuse(self, status: int, text: str) -> None:
        self._answer(status, "application/json", json.dumps({"error": text}).encode())

    def _answer(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def address_string(self) -> str:
        return "init()"  # the client of a Unix socket has no address

    def log_message(self, format: str, *arguments: Any) -> None:
        """Logs nothing, because the library reports errors."""


@contextmanager
def relayed(place: Place, exchange: Exchange) -> Iterator[Relay]:
    """A relay, which the library finds in the environment during the `with`."""
    with tempfile.TemporaryDirectory(prefix="runjob-") as folder:  # mode 0700
        path = os.path.join(folder, "rendezvous.sock")
        with Relay(path, place, exchange) as relay, _environment(
            RUNJOB_RENDEZVOUS=f"unix:{path}", RUNJOB_RANK=str(place.rank), RUNJOB_SIZE=str(len(place.hosts))
        ):
            yield relay


@contextmanager
def _environment(**variables: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


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


def _cbor(blobs: Sequence[bytes]) -> bytes:
    """Encodes an array of byte strings."""
    return _cbor_head(0x80, len(blobs)) + b"".join(_cbor_head(0x40, len(blob)) + blob for blob in blobs)


def _cbor_head(major: int, count: int) -> bytes:
    return bytes([major | 27]) + count.to_bytes(8, "big")


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
