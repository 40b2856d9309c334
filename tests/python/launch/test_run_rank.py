"""python/runjob/launch/run_rank.py: a rank's side of run(), against a server of its own."""

import base64
import http.server
import io
import json
import linecache
import os
import pickle
import platform
import socketserver
import sys
import threading

import pytest

import ranks
from runjob.launch import run_rank

pytest.importorskip("cloudpickle")


MOST_BLOCKS = 6


class Agent(socketserver.ThreadingUnixStreamServer):
    """Serves `function` in blocks of three bytes, and keeps what it is given: so many blocks, and then the job is over."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, path, function=b""):
        self.function, self.received = function, []
        super().__init__(str(path), Handler)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        offset = int(self.path.rpartition("/")[2])
        self.answer(200, self.server.function[offset : offset + 3])

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.received.append((self.path, self.headers["Runjob-Rank"], body))
        over = len(self.server.received) > MOST_BLOCKS
        self.answer(410 if over else 200, b"the job is over" if over else b"")

    def log_message(self, *_):
        pass

    def address_string(self):
        return "agent"


@pytest.fixture
def serve(tmp_path):
    servers = []

    def start(function=b""):
        server = Agent(tmp_path / "s", function)
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server, run_rank.Launcher(f"unix:{tmp_path}/s", 3)

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def pickled(function, args=(), path=(), results="pickle"):
    import cloudpickle

    python = platform.python_version_tuple()[:2]
    caller = {"python": python, "path": list(path), "sources": {"cell 1": ["x = 1\n"]}, "results": results}
    return pickle.dumps(caller) + cloudpickle.dumps((function, args, {}))


def outcome(server, load=pickle.loads):
    assert {path for path, _, _ in server.received} == {"/v1/call/result"}
    assert {rank for _, rank, _ in server.received} == {"3"}
    kinds = b"".join(body[:1] for _, _, body in server.received)
    return kinds, load(b"".join(body[1:] for _, _, body in server.received))


def test_the_function_is_fetched_called_and_its_result_sent(serve):
    server, launcher = serve(pickled(lambda a, b: [a, b], (1, 2)))
    run_rank.call(launcher, 3)
    assert outcome(server) == (b"V.", [1, 2])


def test_an_exception_is_sent_and_raised(serve):
    server, launcher = serve(pickled(lambda: {}["missing"]))
    with pytest.raises(KeyError):
        run_rank.call(launcher, 3)
    kinds, report = outcome(server, json.loads)
    assert kinds == b"E."
    assert report["what"] == "KeyError: 'missing'" and not report["lost_another"]
    assert isinstance(pickle.loads(base64.b64decode(report["exception"])), KeyError)


def test_results_are_json_where_the_caller_takes_nothing_else(serve):
    server, launcher = serve(pickled(lambda: {"loss": [0.5, None]}, results="json"))
    run_rank.call(launcher, 3)
    assert outcome(server, json.loads) == (b"V.", {"loss": [0.5, None]})


def test_a_result_that_json_does_not_have_is_an_error(serve):
    _, launcher = serve(pickled(lambda: {1, 2}, results="json"))
    with pytest.raises(TypeError, match="the result of rank 3, a set, cannot be sent to the caller as json: .* not JSON"):
        run_rank.call(launcher, 3)


def test_sys_exit_is_no_result_and_no_exception(serve):
    server, launcher = serve(pickled(lambda: sys.exit(0)))
    with pytest.raises(SystemExit):
        run_rank.call(launcher, 3)
    assert server.received == []


def test_large_results_go_in_blocks(serve):
    server, launcher = serve(pickled(lambda: bytes(2 << 20)))
    run_rank.call(launcher, 3)
    kinds, result = outcome(server)
    assert result == bytes(2 << 20)
    assert max(len(body) for _, _, body in server.received) <= (1 << 20) + 1


def test_a_launcher_that_refuses_ends_it(serve):
    server, launcher = serve(pickled(lambda: bytes(9 << 20)))
    with pytest.raises(RuntimeError, match="POST /v1/call/result was answered 410: the job is over"):
        run_rank.call(launcher, 3)


def test_the_callers_modules_are_found_after_our_own(serve, tmp_path):
    call = pickled(lambda: None, path=[str(tmp_path), sys.path[0]])
    before = list(sys.path)
    try:
        run_rank.load_call(io.BytesIO(call))
        assert sys.path == before + [str(tmp_path)]
        assert linecache.getline("cell 1", 1) == "x = 1\n"
    finally:
        sys.path[:] = before


def test_without_cloudpickle_a_rank_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    with pytest.raises(RuntimeError, match="cloudpickle is missing for .*python.* -m pip install cloudpickle"):
        run_rank.load_call(io.BytesIO(pickle.dumps({"python": platform.python_version_tuple()[:2], "path": [], "sources": {}, "results": "pickle"})))


def test_it_trusts_nobody_elses_socket(serve, monkeypatch):
    _, launcher = serve(b"")
    monkeypatch.setattr(run_rank.os, "getuid", lambda: os.geteuid() + 1)
    with pytest.raises(PermissionError, match="belongs to user"):
        launcher.function_block(0)


def test_started_by_hand_it_says_what_it_is_for():
    done = ranks.python("-m", "runjob.launch.run_rank", RUNJOB_RENDEZVOUS="")
    assert done.returncode == 1
    assert "this program is started by runjob.run(), and by nothing else" in done.stderr
