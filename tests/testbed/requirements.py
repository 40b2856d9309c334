"""What the testbed needs of the machine, checked before anything is started."""

import os
import pathlib
import shutil

from .errors import NeedsRoot, TestbedError

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PACKAGES = {
    "ip": "iproute2",
    "tc": "iproute2",
    "nft": "nftables",
    "nsenter": "util-linux",
    "setpriv": "util-linux",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
    "sshd": "openssh-server",
}


def program(name, package=None):
    """The full path of a program. TestbedError names the package when it is not there."""
    found = shutil.which(name, path=PATH)
    if not found:
        raise TestbedError(f"the testbed needs {name}; install the package {package or PACKAGES[name]}")
    return found


def check_root():
    if os.geteuid() != 0:
        raise NeedsRoot("the testbed makes namespaces and starts sshd, which needs root; run the tests as root")


def check():
    check_root()
    for name in PACKAGES:
        program(name)
    for kind in ("net", "mnt", "pid", "uts", "ipc"):
        if not pathlib.Path("/proc/self/ns", kind).exists():
            raise TestbedError(f"the testbed needs a kernel with {kind} namespaces")
    if not pathlib.Path("/proc/sys/net/ipv6").exists():
        raise TestbedError("the testbed needs IPv6, which is off in this kernel (ipv6.disable=1?)")


def explain(text):
    """What the kernel's refusal, as one of the processes inside reports it, means for the user."""
    if "PermissionError" in text or "Operation not permitted" in text:
        return f"{text}; the testbed needs CAP_SYS_ADMIN and CAP_NET_ADMIN (a container: --privileged)"
    if "Unknown device type" in text or "Operation not supported" in text:
        return f"{text}; the testbed needs a kernel with bridge and veth devices (modprobe bridge veth)"
    if "mount_setattr" in text and "Function not implemented" in text:
        return f"{text}; the testbed needs Linux 5.12 or newer"
    return text
