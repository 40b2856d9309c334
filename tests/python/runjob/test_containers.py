"""A container for each rank: ranks with namespaces of their own share memory, as long as their network is one."""

import subprocess
import sys

import pytest
import ranks

PROGRAM = """
import numpy as np
import runjob.numpy as rj

rj.init()
shared = any("/memfd:runjob" in line for line in open("/proc/self/maps"))
for count in (4, 1000, 3_000_000):
    out = rj.allreduce(np.full(count, rj.rank() + 1, np.float32), op=rj.Sum)
    assert out[0] == out[-1] == 6
print("shared" if shared else "apart", flush=True)
"""
# Rank 0 or 1 may be outside: the word after the program is its number.
WRAPPER = """
outside=$1; shift
if [ "$RUNJOB_RANK" = "$outside" ]; then exec "$@"; fi
exec unshare $NAMESPACES "$@"
"""
NAMESPACES = ["--mount", "--user", "--user --map-root-user", "--pid --fork --mount-proc", "--mount --pid --fork --ipc --uts --user"]


def run(namespaces, outside):
    if subprocess.run(["unshare", *namespaces.split(), "true"], check=False, capture_output=True).returncode != 0:
        pytest.skip(f"unshare {namespaces} needs more rights")
    return subprocess.run(
        [str(ranks.LAUNCHER), "-np", "3", "--tag-output=none", "sh", "-c", WRAPPER, "sh", outside, sys.executable, "-c", PROGRAM],
        env=ranks.environment(NAMESPACES=namespaces), stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=ranks.TIMEOUT_SECONDS,
    )  # fmt: skip


@pytest.mark.parametrize("outside", ["none", "0", "1"])
@pytest.mark.parametrize("namespaces", NAMESPACES)
def test_ranks_in_containers_share_memory(namespaces, outside):
    done = run(namespaces, outside)
    assert (done.returncode, done.stdout) == (0, "shared\n" * 3), done.stderr
    assert "cannot share memory" not in done.stderr
