"""A stand-in for launcher and agent: a rendezvous on a Unix socket that forms generations of real processes.

It answers a process that is ready when all `expected` numbers are; the test says who is expected.
"""

import http.server
import json
import socketserver
import threading
from urllib.parse import parse_qs, unquote, urlsplit


def _cbor(blobs):
    def head(kind, count):
        for extra, width in ((24, 1), (25, 2), (26, 4)):
            if count < 24:
                return bytes([kind | count])
            if count < 256**width:
                return bytes([kind | extra]) + count.to_bytes(width, "big")
        raise ValueError(count)

    return head(0x80, len(blobs)) + b"".join(head(0x40, len(blob)) + blob for blob in blobs)


class Rendezvous(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True

    def __init__(self, path, size):
        self.condition = threading.Condition()
        self.expected = list(range(size))
        self.members, self.generation = list(range(size)), 0
        self.ready, self.notice, self.gathers = {}, {"sequence": 0, "ended": -1, "reason": ""}, {}
        self.entered, self.reasons = set(), []
        self.commits = []
        super().__init__(str(path), _Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def lose(self, number, reason):
        """Ends the present generation; the next one is formed without `number`."""
        with self.condition:
            self.expected.remove(number)
            self.notice = {**self.notice, "sequence": self.notice["sequence"] + 1, "ended": self.generation, "reason": reason}
            self.condition.notify_all()
            self.form()

    def wait_until_entered(self, numbers):
        """Waits until all of these processes have asked for notices, which a thread of the library does after elastic.run() is entered."""
        with self.condition:
            assert self.condition.wait_for(lambda: self.entered >= numbers, 60), f"of {numbers} only {self.entered} have asked for notices"

    def form(self):
        """Begins the next generation once all that it is to have are ready."""
        if not set(self.expected) <= set(self.ready):
            return
        newest = max(self.ready[each]["commit"] for each in self.expected)
        self.members = sorted(self.expected, key=lambda each: self.ready[each]["commit"] != newest)
        self.commits = [self.ready[each]["commit"] for each in self.members]
        self.generation, self.ready = self.generation + 1, {}
        self.condition.notify_all()

    def place(self, number):
        rank, size = self.members.index(number), len(self.members)
        return {
            "rank": rank, "size": size, "local_rank": rank, "local_size": size, "cross_rank": 0, "cross_size": 1,
            "generation": self.generation, "hostname": "here", "start_timeout_seconds": 20.0, "waiting": False,
            "topology": {"hosts": [[0, 0, size]], "hostnames": ["here"], "commits": self.commits},
        }  # fmt: skip

    def join(self, request):
        number, ready = request["rank"], request.get("ready")
        with self.condition:
            if ready:
                self.ready[number] = ready
                if ready.get("reason"):
                    self.reasons.append(ready["reason"])
                after = self.generation
                self.form()
                self.condition.wait_for(lambda: self.generation > after, 60)
            return self.place(number)

    def gather(self, name, count, index, blob):
        with self.condition:
            blobs = self.gathers.setdefault(name, {})
            blobs[index] = blob
            self.condition.notify_all()
            self.condition.wait_for(lambda: len(blobs) == count, 60)
            return _cbor([blobs[each] for each in range(count)])


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def address_string(self):
        return "a rank"

    def log_message(self, *arguments):
        pass

    def _answer(self, body, status=200):
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        target = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(target.query).items()}
        if target.path == "/v1/join":
            self._answer(self.server.join(json.loads(body)))
        elif target.path.startswith("/v1/gather/"):
            name = unquote(target.path[len("/v1/gather/") :])
            self._answer(self.server.gather(name, int(query["count"]), int(query["index"]), body))
        else:
            self._answer(b"")

    def do_GET(self):
        after = int(parse_qs(urlsplit(self.path).query)["after"][0])
        server = self.server
        with server.condition:
            server.entered.add(int(self.headers["Runjob-Rank"]))
            server.condition.notify_all()
            server.condition.wait_for(lambda: server.notice["sequence"] > after, 3600)
            notice = dict(server.notice)
        self._answer({**notice, "outdated": notice.get("outdated", -1), "only_added": True, "leaving": []})
