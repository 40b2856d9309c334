"""The system calls that Python's standard library lacks (os.setns and os.unshare came with 3.12)."""

import ctypes
import os

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000
MNT_DETACH = 2

PR_SET_PDEATHSIG = 1
SYS_MOUNT_SETATTR = 442  # the same on every architecture
AT_FDCWD, AT_RECURSIVE = -100, 0x8000
MOUNT_ATTR_RDONLY = 1

_libc = ctypes.CDLL(None, use_errno=True)


class _MountAttributes(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "user_namespace")]


def _checked(result, what):
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), what)
    return result


def unshare(flags):
    _checked(_libc.unshare(flags), "unshare")


def setns(descriptor, kind):
    """For CLONE_NEWPID it changes only where the calling thread's next children are born."""
    _checked(_libc.setns(descriptor, kind), "setns")


def signal_when_parent_dies(number):
    _checked(_libc.prctl(PR_SET_PDEATHSIG, number, 0, 0, 0), "prctl")


def set_host_name(name):
    encoded = name.encode()
    _checked(_libc.sethostname(encoded, len(encoded)), "sethostname")


def mount(source, target, kind=None, flags=0, options=None):
    words = [None if word is None else os.fsencode(word) for word in (source, target, kind, options)]
    _checked(_libc.mount(words[0], words[1], words[2], ctypes.c_ulong(flags), words[3]), f"mount on {target}")


def unmount(target, flags=0):
    _checked(_libc.umount2(os.fsencode(target), flags), f"umount {target}")


def set_read_only(path, read_only=True, recursive=True):
    """Changes the mount at `path`, with all mounts below it where `recursive`; not the file system. Needs Linux 5.12."""
    change = _MountAttributes(**{"set" if read_only else "clear": MOUNT_ATTR_RDONLY})
    flags = AT_RECURSIVE if recursive else 0
    _checked(
        _libc.syscall(SYS_MOUNT_SETATTR, AT_FDCWD, os.fsencode(path), flags, ctypes.byref(change), ctypes.sizeof(change)),
        f"mount_setattr {path}",
    )
