"""Somebody on the way between two hosts who changes bytes of the ranks' connections: nothing of it is unpickled, and the job ends with
an error that names the ranks."""

import re
import sys

import pytest
from remote_jobs import ROOT, run
from testbed import Testbed

VARIABLES = {"PYTHONPATH": str(ROOT / "python"), "OMP_NUM_THREADS": "1"}

RANK = """
import runjob.numpy as hvd
hvd.init()
for i in range(3):
    assert hvd.broadcast_object({"number": i} if hvd.rank() == 0 else None) == {"number": i}
    assert hvd.allgather_object(hvd.rank()) == [0, 1]
print("unharmed", flush=True)
word = "GENU" + "INE"
got = hvd.broadcast_object(word if hvd.rank() == 0 else None)
print("accepted", got == word, flush=True)
"""

# All connections of s2's ranks to other hosts pass through it: IPv4 is led there, IPv6 is refused. Its own are made as another
# user, and so do not.
RELAY = r"""
import os, socket, struct, sys, threading
mode = sys.argv[1]
listener = socket.create_server(("127.0.0.1", 9999))
os.setuid(65534)
print("listening", flush=True)
def pump(source, sink, changes):
    seen = 0
    while data := source.recv(1 << 16):
        if changes and mode == "object":
            if b"GENUINE" in data: print("changed", flush=True)
            data = data.replace(b"GENUINE", b"genuine")
        if changes and mode == "late" and seen < 2_000_000 <= seen + len(data):  # long after the start
            data = bytearray(data)
            data[2_000_000 - seen - 1] ^= 1
            print("changed", flush=True)
        seen += len(data)
        sink.sendall(data)
    sink.shutdown(socket.SHUT_WR)
def pump_quietly(*ends):
    try:
        pump(*ends)
    except OSError:
        pass
while True:
    near, _ = listener.accept()
    port, address = struct.unpack("!2xH4s8x", near.getsockopt(socket.SOL_IP, 80, 16))  # SO_ORIGINAL_DST
    far = socket.create_connection((socket.inet_ntoa(address), port))
    threading.Thread(target=pump_quietly, args=(near, far, False), daemon=True).start()
    threading.Thread(target=pump_quietly, args=(far, near, True), daemon=True).start()
"""

RULES = """
add table ip relay
add chain ip relay output { type nat hook output priority -100; }
add rule ip relay output meta skuid != 65534 ip daddr 10.77.0.1 tcp dport 1024-65535 redirect to :9999
add table ip6 relay
add chain ip6 relay output { type filter hook output priority 0; }
add rule ip6 relay output meta skuid != 65534 ip6 daddr fd77::1 tcp dport 1024-65535 reject
"""


@pytest.fixture
def bed():
    with Testbed(hosts=2, visible=[sys.prefix]) as bed:
        yield bed


def lines_so_far(relay):
    relay.kill()
    return relay.stdout.read()


def run_with_relay(bed, mode, *options, code=RANK):
    second = bed.hosts[1]
    second.run(["nft", "-f", "-"], input=RULES, user="root", check=True)
    relay = second.popen([sys.executable, "-c", RELAY, mode], user="root", stdout=-1, text=True)
    try:
        assert relay.stdout.readline() == "listening\n"
        done = run(bed, *options, "-H", "s1,s2", sys.executable, "-c", code, variables=VARIABLES)
        assert ("changed" in lines_so_far(relay)) == (mode != "nothing"), done.stderr
        return done
    finally:
        relay.kill()
        relay.wait()
        relay.stdout.close()
        for family in ("ip", "ip6"):
            second.run(["nft", "delete", "table", family, "relay"], user="root", check=True)


def test_a_relay_that_changes_nothing_changes_nothing(bed):
    done = run_with_relay(bed, "nothing")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("accepted True") == 2


def test_an_object_that_is_changed_on_its_way_is_not_unpickled(bed):
    done = run_with_relay(bed, "object")
    assert done.returncode != 0
    assert done.stdout.count("unharmed") == 2
    assert "[1]<stdout>:accepted" not in done.stdout
    assert "object 'object': the bytes that rank 1 has received are not those that rank 0 has sent" in done.stderr


def test_with_encryption_a_byte_that_is_changed_ends_the_job_with_the_other_host_s_name(bed):
    code = """
import numpy as np, runjob.numpy as hvd
hvd.init()
for i in range(200):
    assert (hvd.allreduce(np.ones(10_000, np.float32), op=hvd.Sum, name=f"a{i}") == 2).all()
print("accepted", flush=True)
"""
    done = run_with_relay(bed, "late", "--encrypt-data", code=code)
    assert done.returncode != 0 and "accepted" not in done.stdout
    error = r"rank 0 (on s1 )?at 10\.77\.0\.1: bytes on the connection that the other side has not sealed with the job's key"
    assert re.search(error, done.stderr), done.stderr
