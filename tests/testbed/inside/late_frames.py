"""Forwards frames between two interfaces, each one so many seconds after it came: a long cable. Ends when its input does.

python3 late_frames.py INTERFACE INTERFACE SECONDS

Segments and checksums that are left to a network card stay as they are: the frames travel with virtio's header (packet(7),
PACKET_VNET_HDR).
"""

import collections
import contextlib
import select
import socket
import sys
import time

ETH_P_ALL, SO_RCVBUFFORCE = 3, 33  # not in the module socket, like the three below
SOL_PACKET, PACKET_VNET_HDR, PACKET_IGNORE_OUTGOING = 263, 15, 23
MOST_BYTES = 1 << 17  # of a frame with its header
BUFFER_BYTES = 16 << 20


def open_interface(name):
    end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    end.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    end.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    end.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES)
    end.bind((name, ETH_P_ALL))
    end.setblocking(False)
    return end


def main():
    seconds = float(sys.argv[3])
    ends = [open_interface(name) for name in sys.argv[1:3]]
    others = dict(zip(ends, reversed(ends)))
    late = collections.deque()  # (when, to which end, the frame), in the order of time
    print("ready", flush=True)
    while True:
        timeout = max(0, late[0][0] - time.monotonic()) if late else None
        ready = select.select([*ends, sys.stdin], [], [], timeout)[0]
        if sys.stdin in ready:
            return
        now = time.monotonic()
        for end in ready:
            with contextlib.suppress(OSError):  # nothing, or the interface is down
                late.append((now + seconds, others[end], end.recv(MOST_BYTES)))
        while late and late[0][0] <= now:
            with contextlib.suppress(OSError):  # a frame is lost where a queue is full or the interface is down
                late[0][1].send(late[0][2])
            late.popleft()


if __name__ == "__main__":
    main()
