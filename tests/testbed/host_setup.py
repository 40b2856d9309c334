"""Describes a host to its PID 1: names, files and devices, as plain data (inside/mounts.py and inside/init.py use it)."""

import pathlib
import sys

from . import accounts, sshd
from .errors import TestbedError
from .specs import HOME, USER_ID

ROOT = pathlib.Path(__file__).resolve().parents[2]
NSSWITCH = "passwd: files\ngroup: files\nshadow: files\nhosts: files\n"  # an unknown host is known to be unknown at once
# What a host has of its own, empty and in memory, with the mode that it has everywhere.
FOLDERS = {
    "/tmp": 0o1777, "/var/tmp": 0o1777, "/run": 0o755, "/dev/shm": 0o1777, "/home": 0o755, "/root": 0o700, "/var/log": 0o755,
    "/etc/ssh": 0o755,
}  # fmt: skip
DECOYS = {"docker0": "172.17.0.1/16", "virbr0": "192.168.122.1/24"}  # never reach another host


def visible_paths(more):
    """What the user of a host must be able to read, wherever it is: the source tree, this Python, and `more`."""
    wanted = {pathlib.Path(path).resolve() for path in (ROOT, sys.prefix, sys.base_prefix, *more)}
    for path in wanted:
        needed = 0o005 if path.is_dir() else 0o004
        if path.stat().st_mode & needed != needed:
            raise TestbedError(f"the user of the hosts, who is nobody on the machine, may not read {path}; chmod -R o+rX {path}")
    return sorted(str(path) for path in wanted if not wanted & set(path.parents))


def _closed_folders(visible):
    """Folders above visible paths that only their owner may enter, as /root is."""
    above = {folder for path in visible for folder in pathlib.Path(path).parents}
    return {str(folder) for folder in above if not folder.stat().st_mode & 0o001}


def _folders(spec, visible):
    """[{path, options, mode, owner}], outer ones first."""
    modes = {**dict.fromkeys({*_closed_folders(visible), *spec.tmpfs}, 0o755), **FOLDERS}
    for folder in modes:
        if any(_is_below(path, folder) for path in visible):
            modes[folder] |= 0o555
    modes.pop(HOME, None)
    users = {path: [0, 0] for path in sorted(modes)} | {HOME: [USER_ID, USER_ID]}
    return [
        {"path": path, "options": spec.tmpfs.get(path, ""), "mode": modes.get(path, 0o755), "owner": owner}
        for path, owner in users.items()
    ]


def options_of_shared_home():
    """As mount(8) takes them."""
    return f"mode=755,uid={USER_ID},gid={USER_ID}"


def _is_below(path, folder):
    return pathlib.PurePath(folder) in pathlib.PurePath(path).parents


def _etc_hosts(name, host_lines, decoys):
    """With decoys the host's own name means 127.0.1.1 first, as Debian's installer writes it."""
    own = [f"127.0.1.1 {name}"] if decoys else []
    return "\n".join(["127.0.0.1 localhost", "::1 localhost ip6-localhost ip6-loopback", *own, *host_lines]) + "\n"


def _file(path, text, mode=0o644, of_user=False):
    return {"path": path, "text": text, "mode": mode, "owner": [USER_ID, USER_ID] if of_user else [0, 0]}


def _files(spec, host_keys, user_files):
    """In the order in which they are made; a text of None is a folder."""
    files = [_file("/run/sshd", None, 0o755), _file("/run/lock", None, 0o1777), _file(f"{HOME}/.ssh", None, 0o700, True)]
    files += [_file(f"{HOME}/.ssh/{name}", text, mode, True) for name, (text, mode) in user_files.items()]
    if spec.sshd:
        files.append(_file(sshd.CONFIG, sshd.config(spec)))
        for kind, pair in host_keys.items():
            files.append(_file(f"/etc/ssh/ssh_host_{kind}_key", pair.private, 0o600))
            files.append(_file(f"/etc/ssh/ssh_host_{kind}_key.pub", pair.public))
    return files


def _links(host):
    """Lines for ip, run inside the host when its devices are there."""
    lines = ["link set lo up"]
    for network in host.networks:
        lines.append(f"addr add {host.addresses[network.interface]}/24 brd + dev {network.interface}")
        lines.append(f"addr add {host.addresses6[network.interface]}/64 dev {network.interface} nodad")
        lines.append(f"link set {network.interface} up")
    if host.networks:
        lines.append(f"route add default via {host.networks[0].gateway}")
    for name, address in DECOYS.items() if host.spec.decoys else ():
        lines += [f"link add {name} type bridge", f"addr add {address} brd + dev {name}", f"link set {name} up"]
    return lines


def describe(host, host_lines, host_keys, user_files, visible, shared_home):
    """`host_lines`: those of /etc/hosts for all hosts. `user_files`: {file in ~/.ssh: (text, mode)}."""
    folders = _folders(host.spec, visible)
    covers = {
        "/etc/passwd": (accounts.passwd(), 0o644),
        "/etc/group": (accounts.group(), 0o644),
        "/etc/shadow": (accounts.shadow(), 0o600),
        "/etc/hosts": (_etc_hosts(host.name, host_lines, host.spec.decoys), 0o644),
        "/etc/nsswitch.conf": (NSSWITCH, 0o644),
    }
    return {
        "name": host.name,
        "visible": [path for path in visible if any(_is_below(path, folder["path"]) for folder in folders)],
        "shared": HOME if shared_home else None,
        "covers": [{"path": path, "text": text, "mode": mode} for path, (text, mode) in covers.items()],
        "folders": folders,
        "hide": [str(pathlib.Path(path).resolve()) for path in host.spec.hide],
        "files": _files(host.spec, host_keys, user_files),
        "links": _links(host),
    }
