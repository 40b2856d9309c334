"""Ranks reach the rendezvous over their agent's socket; those that never come are named."""

import os
import re

import pytest
from jobs import ROOT, by_rank, python, run
from testbed import with_enough_time

CLIENT = """
import http.client, json, os, socket, sys, time

class Connection(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(os.environ['RUNJOB_RENDEZVOUS'].removeprefix('unix:'))

rank = int(os.environ['RUNJOB_RANK'])
connection = Connection('localhost')

def ask(method, path, body=b''):
    connection.request(method, path, body, {'Runjob-Rank': str(rank)})
    reply = connection.getresponse()
    return reply.status, reply.read()

def join():
    status, body = ask('POST', '/v1/join', json.dumps({'rank': rank, 'pid': os.getpid()}))
    assert status == 200, body
    return json.loads(body)
"""


def test_join_gather_and_values():
    code = CLIENT + """
place = join()
status, body = ask('POST', '/v1/gather/names', b'blob %d' % rank)
assert status == 200 and all(b'blob %d' % r in body for r in range(3)), body
if rank == 1:
    assert ask('PUT', '/v1/kv/scope/key', b'\\x00value')[0] == 200
status, body = ask('GET', '/v1/kv/scope/key?wait=20')
assert (status, body) == (200, b'\\x00value')
assert ask('POST', '/v1/barrier/end')[0] == 200
print(place['rank'], place['size'], place['topology']['hostnames'])
"""
    done = run("-np", "3", *python(code))
    assert done.returncode == 0, done.stderr
    assert by_rank(done.stdout) == {rank: [f"{rank} 3 ['localhost']"] for rank in range(3)}


def test_rank_that_never_calls_init_is_named():
    code = CLIENT + "if rank != 1: join(); print('joined', flush=True)\ntime.sleep(600)"

    def attempt(limit):
        done = run("-np", "3", "--start-timeout", str(limit), *python(code))
        assert done.returncode == 125
        return done.stderr if done.stdout.count("joined") == 2 else None

    errors = with_enough_time(attempt, "ranks 0 and 2 have joined")
    assert "runjob: error: rank 1 on localhost has not called init() for " in errors
    assert re.search(r"\(pid \d+\); for a longer time give --start-timeout, which is \S+ s\n", errors)


def test_rank_that_ends_without_init_is_named_at_once():
    code = CLIENT + "\nif rank == 1: sys.exit(0)\njoin(); ask('POST', '/v1/gather/x', b'')"
    done = run("-np", "2", "--start-timeout", "50", *python(code))
    assert done.returncode == 125
    assert "rank 1 on localhost" in done.stderr and "without calling init()" in done.stderr


def test_socket_is_private_and_removed(tmp_path):
    code = "import os, stat\np = os.environ['RUNJOB_RENDEZVOUS'][5:]; d = os.path.dirname(p)\nprint(oct(stat.S_IMODE(os.stat(d).st_mode)), d)"
    done = run("-np", "1", *python(code))
    mode, directory = by_rank(done.stdout)[0][0].split()
    assert mode == "0o700"
    assert not os.path.exists(directory)


@pytest.mark.parametrize("blob", ["b'\\x81' * 200_000", "b'\\x7f\\x60' * 100_000", "b'\\xa1\\x61k' * 60_000", "b''", "b'nonsense'"])
def test_a_rank_whose_addresses_nobody_can_read_is_named_by_the_others(blob):
    code = CLIENT + f"""
if rank == 1:
    join()
    ask('POST', '/v1/gather/runtime.init.0.0', {blob})
    time.sleep(600)
import runjob.numpy as hvd
hvd.init()
"""
    done = run("-np", "3", *python(code), env={**os.environ, "PYTHONPATH": str(ROOT / "python")})
    assert done.returncode == 1
    assert "rank 1 on localhost has sent malformed addresses: " in done.stderr
    assert "signal" not in done.stderr
