"""The accounts of a host: the machine's system accounts, which its packages need, and one ordinary user."""

import grp
import pwd

from .specs import HOME, USER, USER_ID

SHELL = "/bin/bash"


def _is_of_the_system(number):
    return number < 1000 or 60000 <= number < 65536  # Debian policy 9.2.2: beyond 60000 packages again (slurm), and nobody


def passwd():
    machine = [entry for entry in pwd.getpwall() if _is_of_the_system(entry.pw_uid) and entry.pw_name != "root"]
    lines = [f"root:x:0:0:root:/root:{SHELL}", f"{USER}:x:{USER_ID}:{USER_ID}:{USER}:{HOME}:{SHELL}"]
    lines += [f"{entry.pw_name}:x:{entry.pw_uid}:{entry.pw_gid}::{entry.pw_dir}:/usr/sbin/nologin" for entry in machine]
    return "\n".join(lines) + "\n"


def group():
    machine = [entry for entry in grp.getgrall() if _is_of_the_system(entry.gr_gid)]
    return "\n".join([*(f"{entry.gr_name}:x:{entry.gr_gid}:" for entry in machine), f"{USER}:x:{USER_ID}:"]) + "\n"


def shadow():
    """No password fits, but no account is locked: sshd refuses locked ones even with a key."""
    return "".join(f"{name}:*:19000:0:99999:7:::\n" for name in [line.split(":")[0] for line in passwd().splitlines()])
