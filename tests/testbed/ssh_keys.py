"""SSH key pairs, made by the real ssh-keygen."""

import concurrent.futures
import dataclasses
import functools
import os
import subprocess

from . import requirements
from .errors import TestbedError

HOST_KEY_TYPES = ("ed25519", "ecdsa", "rsa")
RSA_BITS = "2048"  # each RSA key takes a tenth of a second, and 32 hosts need 32
# The files exist in a mount namespace of their own, so that nothing is left of them however this ends.
SCRIPT = """set -e
mount -t tmpfs keys /tmp
ssh-keygen -q -N '' -C testbed -f /tmp/key "$@"
cat /tmp/key /tmp/key.pub"""
LAST_LINE = "-----END OPENSSH PRIVATE KEY-----\n"


@dataclasses.dataclass(frozen=True)
class KeyPair:
    private: str  # whole files
    public: str

    @property
    def public_words(self):
        """Type and key, without the comment."""
        return " ".join(self.public.split()[:2])


def generate(kind):
    options = ["-t", kind, *(["-b", RSA_BITS] if kind == "rsa" else [])]
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", SCRIPT, "sh", *options], check=False, capture_output=True, text=True
    )
    if done.returncode:
        raise TestbedError(f"making an SSH key: {requirements.explain(done.stderr.strip())}")
    private, last_line, public = done.stdout.partition(LAST_LINE)
    return KeyPair(private + last_line, public)


@functools.cache
def _host_key(number, kind):
    return generate(kind)


def host_keys(count):
    """[{type: KeyPair}] for `count` hosts. A host has the same keys in every testbed of this process: RSA is slow to make."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        made = {(number, kind): pool.submit(_host_key, number, kind) for number in range(count) for kind in HOST_KEY_TYPES}
    return [{kind: made[number, kind].result() for kind in HOST_KEY_TYPES} for number in range(count)]
