"""Starts torchft's lighthouse and COUNT replica groups of one rank each with torchrun, as torchft's README does, until all groups have ended.

    start_torchft.py COUNT HEARTBEAT_MS PROGRAM ARGUMENTS...

HEARTBEAT_MS: after so long without a heartbeat the lighthouse gives up a group.
"""

import os
import pathlib
import socket
import subprocess
import sys

count, heartbeat_ms, command = int(sys.argv[1]), sys.argv[2], sys.argv[3:]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


port = free_port()
lighthouse = subprocess.Popen(
    [pathlib.Path(sys.executable).with_name("torchft_lighthouse"), "--bind", f"127.0.0.1:{port}", "--min_replicas", "2",
     "--heartbeat_timeout_ms", heartbeat_ms, "--join_timeout_ms", "10000", "--quorum_tick_ms", "100"],
    stderr=subprocess.DEVNULL,
)  # fmt: skip
groups = []
try:
    for group in range(count):
        words = [sys.executable, "-m", "torch.distributed.run", "--nnodes=1", "--nproc-per-node=1", "--max-restarts=100"]
        words += ["--master-addr=127.0.0.1", f"--master-port={free_port()}", "--monitor-interval=0.1", *command]
        variables = {**os.environ, "TORCHFT_LIGHTHOUSE": f"http://127.0.0.1:{port}", "REPLICA_GROUP_ID": str(group)}
        groups.append(subprocess.Popen(words, env=variables))
    for each in groups:
        each.wait()
finally:
    for each in [lighthouse, *groups]:
        each.kill()
        each.wait()
