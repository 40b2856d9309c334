"""Somebody on the network of a testbed's host who reads every packet there."""

import contextlib
import dataclasses
import sys

SECRET = b"nobody may read this gradient. "  # the ranks' data repeat it

SNIFFER = """
import socket, sys
packets = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.ntohs(3))
packets.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE
print("listening", flush=True)
packets.settimeout(0.5)
seen = total = 0
stop = False
import threading
def wait():
    global stop
    sys.stdin.read()
    stop = True
threading.Thread(target=wait, daemon=True).start()
while True:
    try:
        packet = packets.recv(70000)
    except TimeoutError:
        if stop: break
        continue
    total += len(packet)
    seen += b"read this gradient" in packet
print(seen, total, flush=True)
"""


@dataclasses.dataclass
class Found:
    packets: int = 0  # those with a part of SECRET
    bytes: int = 0  # of all packets


@contextlib.contextmanager
def sniffing(host):
    """Counts the packets on the network of `host` during the block. The Found is complete after the block."""
    found = Found()
    with host.popen([sys.executable, "-c", SNIFFER], user="root", stdin=-1, stdout=-1, text=True) as sniffer:
        try:
            assert sniffer.stdout.readline() == "listening\n"
            yield found
            output, _ = sniffer.communicate(timeout=60)
            found.packets, found.bytes = (int(word) for word in output.split())
        finally:
            sniffer.kill()
