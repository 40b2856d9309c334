"""Strangers at the ports of ranks, while a job with several hosts starts and while it runs: the job goes on."""

import re
import sys

from remote_jobs import ROOT, Running
from testbed import Testbed, eventually

VARIABLES = {"PYTHONPATH": str(ROOT / "python"), "OMP_NUM_THREADS": "1"}

# Rank 1 comes to init() when the test lets it, so that rank 0 listens meanwhile.
RANK = """
import os, pathlib, time
import runjob.numpy as hvd
import numpy as np

if os.environ["RUNJOB_RANK"] == "1":
    while not pathlib.Path("/tmp/go").exists():
        time.sleep(0.05)
hvd.init()
for i in range(200):
    assert (hvd.allreduce(np.ones(1 + 977 * i), name=f"a{i}", op=hvd.Sum) == hvd.size()).all()
assert hvd.broadcast_object({"from": hvd.rank()}) == {"from": 0}
print("ranks:", hvd.size(), flush=True)
"""

# The number with which a member says hello: "RJD" and the version.
HANDSHAKE = (ROOT / "runtime" / "links" / "handshake.hpp").read_text()
MAGIC = int(re.search(r"magic = (0x[0-9a-f]+);", HANDSHAKE).group(1), 16)

# Some connections are silent, some send what no rank would, some say hello in the right words, are answered, and prove nothing.
STRANGER = r"""
import socket, struct, sys, time
address, magic, ports = sys.argv[1], int(sys.argv[2]), [int(word) for word in sys.argv[3:]]
held, greeted = [], []
for turn in range(30):
    for port in ports:
        connection = socket.create_connection((address, port), timeout=5)
        if turn % 3 == 1:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 3)
        if turn % 3 == 2:
            connection.sendall(struct.pack("<IiiI", magic, 1, 0, 0) + bytes(64) + bytes(32))
            greeted.append(connection)
        held.append(connection)
print("there", flush=True)
answered = 0
for connection in greeted:  # rank 0 answers when rank 1 has come
    connection.settimeout(60)
    answered += len(connection.recv(100, socket.MSG_WAITALL)) == 100
print("answered:", answered, "of", len(greeted), flush=True)
time.sleep(60)
"""


def listening_ports(host):
    """Of TCP, on the host's own network, without sshd."""
    lines = host.run(["cat", "/proc/net/tcp"]).stdout.splitlines()[1:]
    ports = {int(line.split()[1].rsplit(":", 1)[1], 16) for line in lines if line.split()[3] == "0A" and not line.split()[1].startswith("0100007F")}
    return ports - {host.port}


def test_strangers_are_refused_and_named_and_the_job_goes_on():
    with Testbed(hosts=3) as bed:
        first, second, third = bed.hosts
        with Running(bed, "-H", "s1,s2", sys.executable, "-c", RANK, variables=VARIABLES) as job:
            eventually(lambda: len(listening_ports(first)) >= 2, "rank 0 listens for control and for data")
            stranger = third.popen([sys.executable, "-c", STRANGER, first.address, str(MAGIC), *map(str, sorted(listening_ports(first)))], stdout=-1, text=True)
            try:
                assert stranger.stdout.readline() == "there\n"
                second.write("/tmp/go", "")
                status, output, errors = job.finish()
                answered = stranger.stdout.readline()
            finally:
                stranger.kill()
                stranger.stdout.close()
                stranger.wait()
        assert status == 0, errors
        assert output.count("ranks: 2") == 2
        assert re.fullmatch(r"answered: (\d\d) of \1\n", answered), "their hello is that of a member"
        assert f"a connection from {third.address} to the port for data between ranks was refused" in errors
        assert not listening_ports(first), "the ports are closed once all ranks are connected"
