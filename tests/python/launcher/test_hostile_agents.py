"""Agents that send what none of ours would, as a host that somebody else controls could: the job ends with an error that names it."""

import subprocess
import sys

import pytest
from jobs import RUNJOB, run

# The place of ssh: it plays the agent of the host, whose frames launcher/channel/frame.hpp describes.
AGENT = """#!{python}
import struct, sys

def cbor(value):
    def head(major, count):
        return bytes([major << 5 | 27]) + count.to_bytes(8, "big")
    if isinstance(value, bool):
        return b"\\xf5" if value else b"\\xf4"
    if isinstance(value, int):
        return head(0, value) if value >= 0 else head(1, -1 - value)
    if isinstance(value, str):
        return head(3, len(value)) + value.encode()
    if isinstance(value, list):
        return head(4, len(value)) + b"".join(map(cbor, value))
    return head(5, len(value)) + b"".join(cbor(key) + cbor(item) for key, item in value.items())

def send(kind, payload=b"", rank=-1, stream=0):
    payload = payload if isinstance(payload, bytes) else cbor(payload)
    sys.stdout.buffer.write(struct.pack("<IBBHiq", len(payload), kind, stream, 0, rank, 0) + payload)
    sys.stdout.buffer.flush()

HELLO, STARTED, OUTPUT, INPUT_CREDIT, EXITED, TOLD_TO_END, REMAINING = 1, 3, 5, 8, 9, 26, 28
NESTED = b"\\x81" * 1_000_000
sys.stdout.buffer.write(b"\\x7frunjob-frames1\\n")
send(HELLO, {{"version": "{version}", "pid": 7, "hostname": "far", "cores": 1, "online_cores": 1, "free_port": 0, "network": []}})
send(STARTED, {{"pid": 7, "cpus": [], "gpus": []}}, rank=0)
{attack}
while sys.stdin.buffer.read(1 << 16):
    pass
"""

ATTACKS = {
    "send(EXITED, NESTED, rank=0)": "nested more than 32 levels deep",
    "send(REMAINING, NESTED)": "nested more than 32 levels deep",
    "send(EXITED, b'\\x7f' * 1_000_000, rank=0)": "an item has no length",
    "send(EXITED, {}, rank=-1)": "it sent a frame for rank -1, which is not on that host",
    "send(INPUT_CREDIT, {'bytes': 2**63 - 1}, rank=0); send(INPUT_CREDIT, {'bytes': 2**63 - 1}, rank=0)": "it gave credit for 9223372036854775807 bytes",
    "send(TOLD_TO_END)": "it reported that SLURM ends the job, which SLURM has not started",
    "send(OUTPUT, b'x' * 2**24, rank=0, stream=1)": "it sent more output of rank 0 than it had credit for",
    "send(INPUT_CREDIT, {'bytes': 2**64 - 1}, rank=0)": "18446744073709551615 is out of range",
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_agent_that_sends_nonsense_ends_the_job_and_its_host_is_named(tmp_path, attack):
    version = subprocess.run([RUNJOB, "--version"], capture_output=True, text=True, check=True).stdout.split()[-1]
    ssh = tmp_path / "ssh"
    ssh.write_text(AGENT.format(python=sys.executable, version=version, attack=attack))
    ssh.chmod(0o755)
    done = run("-H", "far", "--ssh-command", str(ssh), "true")
    assert done.returncode == 125, done.stderr
    assert done.stderr.startswith("runjob: error: lost the agent on far: ") and ATTACKS[attack] in done.stderr
    assert len(done.stderr) < 1000
