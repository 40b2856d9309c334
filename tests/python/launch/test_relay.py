"""python/runjob/launch/relay.py: what it answers, and who may ask. The library as its client is in tests/python/mpi."""

import http.client
import json
import os
import socket
import stat
import threading

import pytest
from hostile_bytes import changed

from runjob.launch import relay
from runjob.launch.relay import Place


@pytest.mark.parametrize("count", [0, 5, 23, 24, 255, 256, 70_000])
def test_blobs_are_read_as_they_were_written(count):
    blobs = [bytes([i % 256]) * (i % 7) for i in range(count)]
    assert relay._blobs(relay._cbor(blobs)) == blobs
    assert relay._blobs(relay._cbor([b"x" * count])) == [b"x" * count]


def test_short_forms_are_read_too():
    assert relay._blobs(b"\x82\x41a\x58\x02bc") == [b"a", b"bc"]
    with pytest.raises(ValueError, match="not a CBOR array of byte strings"):
        relay._blobs(b"\xa0")


def test_any_bytes_are_blobs_or_an_error():
    honest = relay._cbor([b"one", b"", b"x" * 300])
    for seed in range(3000):
        data = changed(honest, seed)
        try:
            blobs = relay._blobs(data)
        except ValueError as error:
            assert "not a CBOR array of byte strings" in str(error)
        else:
            assert relay._blobs(relay._cbor(blobs)) == blobs and sum(map(len, blobs)) < len(data)


def test_places_on_several_hosts():
    hosts = [0, 1, 0, 1, 1]
    replies = [Place(rank, hosts, ["a", "b"], 30.0).join_reply() for rank in range(5)]
    seen = [[reply[name] for name in ("local_rank", "local_size", "cross_rank", "cross_size", "hostname")] for reply in replies]
    assert seen == [[0, 2, 0, 2, "a"], [0, 3, 1, 2, "b"], [1, 2, 0, 2, "a"], [1, 3, 1, 2, "b"], [2, 3, 0, 1, "b"]]
    assert replies[0]["topology"] == {"hosts": [[0, 0, 1], [1, 0, 1], [0, 0, 1], [1, 0, 1], [1, 0, 1]], "hostnames": ["a", "b"]}


class _Connection(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(self.host)


def _ask(exchange, *requests):
    """The answers of a relay to (path, body), on one connection."""
    answers = []
    with relay.relayed(Place(0, [0], ["a"], 5.0), exchange) as served:
        path = os.environ["RUNJOB_RENDEZVOUS"].removeprefix("unix:")
        folder = os.path.dirname(path)
        assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
        ended = threading.Event()

        def ask():
            connection = _Connection(path)
            for target, body in requests:
                connection.request("POST", target, body)
                response = connection.getresponse()
                answers.append((response.status, response.read()))
            connection.close()
            ended.set()

        thread = threading.Thread(target=ask)
        thread.start()
        served.serve_until(ended)
        thread.join()
    assert not os.path.exists(folder) and "RUNJOB_RENDEZVOUS" not in os.environ
    return answers


def test_joins_and_gathers_are_answered(monkeypatch):
    monkeypatch.delenv("RUNJOB_RENDEZVOUS", raising=False)
    join, gather, other = _ask(lambda blob: [blob, b"more"], ("/v1/join", b"{}"), ("/v1/gather/x", b"mine"), ("/v1/failing", b"{}"))
    assert join[0] == 200 and json.loads(join[1])["size"] == 1
    assert gather[0] == 200 and relay._blobs(gather[1]) == [b"mine", b"more"]
    assert other[0] == 404


@pytest.mark.parametrize("error, status", [(TimeoutError("rank 1 is missing"), 408), (OSError("broken"), 503)])
def test_an_exchange_that_fails_is_an_answer(monkeypatch, error, status):
    monkeypatch.delenv("RUNJOB_RENDEZVOUS", raising=False)

    def exchange(blob):
        raise error

    ((found, text),) = _ask(exchange, ("/v1/gather/x", b""))
    assert found == status and str(error) in json.loads(text)["error"]
