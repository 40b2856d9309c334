"""Gives a host, which has its own mount namespace already, its own view of the machine's files.

The machine's files stay where they are, read-only. On top of them come, in the order of `build`: private files
over single ones of the machine, empty file systems in memory over folders, and what must stay visible below those.
"""

import os
import stat

import linux

STAGING = "/tmp"  # where private files are made, before the host's own /tmp covers it
SHARED = "/dev/shm"  # where the keeper has mounted what all hosts share


def build(setup):
    """`setup` is what testbed/host_setup.py describes."""
    linux.mount(None, "/", flags=linux.MS_REC | linux.MS_PRIVATE)
    sources = {path: os.open(path, os.O_PATH) for path in [*setup["visible"], *([SHARED] if setup["shared"] else [])]}
    linux.set_read_only("/")
    _cover_files(setup["covers"])
    for folder in setup["folders"]:
        _mount_memory(**folder)
    for path in setup["visible"]:
        _show(sources[path], path)
    if setup["shared"]:
        _show(sources[SHARED], setup["shared"], 0)  # without what covers it at its own place by now
        linux.set_read_only(setup["shared"], False, recursive=False)
    for path in setup["hide"]:
        _hide(path)
    for file in setup["files"]:
        write(**file)
    _mount_kernel_file_systems()
    for descriptor in sources.values():
        os.close(descriptor)


def _cover_files(covers):
    """Covers files of the machine; what covers them lies in a file system that has no other name."""
    linux.mount("testbed", STAGING, "tmpfs")
    for number, cover in enumerate(covers):
        source = f"{STAGING}/{number}"
        write(source, cover["text"], cover["mode"])
        linux.mount(source, cover["path"], flags=linux.MS_BIND)
    linux.unmount(STAGING, linux.MNT_DETACH)


def _mount_memory(path, options, mode, owner):
    """`options` as mount(8) takes them for tmpfs; `noexec` is the one flag among them."""
    words = [word for word in options.split(",") if word]
    flags = linux.MS_NOSUID | linux.MS_NODEV | (linux.MS_NOEXEC if "noexec" in words else 0)
    if not os.path.exists(path):
        os.makedirs(path)
    rest = [word for word in words if word != "noexec"]
    linux.mount("tmpfs", path, "tmpfs", flags, ",".join([f"mode={mode:o},uid={owner[0]},gid={owner[1]}", *rest]))


def _show(descriptor, path, recursive=linux.MS_REC):
    """Mounts an open folder or file at `path`, which is made where an empty file system hides it."""
    if not os.path.exists(path):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            os.makedirs(path)
        else:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            open(path, "x").close()
    linux.mount(f"/proc/self/fd/{descriptor}", path, flags=linux.MS_BIND | recursive)


def _hide(path):
    if os.path.isdir(path):
        linux.mount("tmpfs", path, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, "mode=755")
    else:
        linux.mount("/dev/null", path, flags=linux.MS_BIND)


def write(path, text, mode, owner=(0, 0)):
    """A file, or a folder where `text` is None; the folders above it must exist."""
    if text is None:
        os.makedirs(path, exist_ok=True)
    else:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    os.chmod(path, mode)
    os.chown(path, *owner)


def _mount_kernel_file_systems():
    hardened = linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC
    cgroups = os.open("/sys/fs/cgroup", os.O_PATH) if os.path.isdir("/sys/fs/cgroup") else None
    linux.mount("sysfs", "/sys", "sysfs", hardened | linux.MS_RDONLY)  # /sys/class/net is that of this network namespace
    if cgroups is not None:
        linux.mount(f"/proc/self/fd/{cgroups}", "/sys/fs/cgroup", flags=linux.MS_BIND | linux.MS_REC)
        os.close(cgroups)
    linux.mount("devpts", "/dev/pts", "devpts", linux.MS_NOSUID | linux.MS_NOEXEC, "newinstance,ptmxmode=666,mode=620,gid=5")
    linux.mount("/dev/pts/ptmx", "/dev/ptmx", flags=linux.MS_BIND)
    linux.mount("proc", "/proc", "proc", hardened)  # last: /proc/self/fd was the machine's until here
