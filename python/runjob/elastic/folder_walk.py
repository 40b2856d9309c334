"""Opens the path to a folder that a user has named part by part, as base/files/folder_walk.hpp and trusted_file.hpp do
in C++.

Another user who may write to a folder of the path could put a link there. Therefore, from the first folder on to which
others may write, a link is followed only if this user or root has made it.
"""

from __future__ import annotations

import errno
import grp
import os
import pwd
import stat

_ANY = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
_MOST_LINKS = 40  # the kernel's limit, path_resolution(7)


def open_folder(path: str) -> int:
    """A descriptor of the folder `path`, opened with O_PATH, which serves only as `dir_fd`. Missing folders are made,
    with mode 0777 less the umask. The caller closes the descriptor.

    Errors  OSError, also for a link that is not followed; `strerror` names it and its owner.
    """
    parts = (path if path.startswith("/") else f"{os.getcwd()}/{path}").split("/")
    links = 0
    folder, here, is_shared = _root()
    try:
        while parts:
            part = parts.pop(0)
            if part in ("", "."):
                continue
            opened = _open_part(part, folder)
            info = os.fstat(opened)
            if not stat.S_ISLNK(info.st_mode):
                os.close(folder)
                folder, here, is_shared = opened, f"{here}{part}/", is_shared or _may_be_changed(opened)
                continue
            target = os.readlink("", dir_fd=opened)
            os.close(opened)
            links += 1
            if links > _MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            if is_shared and info.st_uid not in (0, os.geteuid()):
                raise OSError(errno.ELOOP, f"the link {here}{part} belongs to user {info.st_uid}, and this process to user {os.geteuid()}")
            if target.startswith("/"):
                os.close(folder)
                folder, here, is_shared = _root()
            parts[:0] = target.split("/")
    except BaseException:
        os.close(folder)
        raise
    return folder


def others_may_write(file: int) -> bool:
    """True if another user may write to the open file or folder `file`. A group whose only member is this user does not
    count as others.
    """
    info = os.fstat(file)
    if info.st_mode & stat.S_IWOTH:
        return True
    return bool(info.st_mode & stat.S_IWGRP) and (not _is_group_of_one(info.st_gid, info.st_uid) or _has_access_list(file))


def _root() -> tuple[int, str, bool]:
    folder = os.open("/", _FOLDER)
    return folder, "/", _may_be_changed(folder)


def _open_part(name: str, folder: int) -> int:
    try:
        return os.open(name, _ANY, dir_fd=folder)
    except FileNotFoundError:
        try:
            os.mkdir(name, 0o777, dir_fd=folder)
        except FileExistsError:
            pass  # another rank has made it
        return os.open(name, _ANY, dir_fd=folder)


def _may_be_changed(folder: int) -> bool:
    return os.fstat(folder).st_uid not in (0, os.geteuid()) or others_may_write(folder)


def _is_group_of_one(group: int, user: int) -> bool:
    try:
        account, entry = pwd.getpwuid(user), grp.getgrgid(group)
    except KeyError:
        return False
    is_own = account.pw_gid == group and account.pw_name == entry.gr_name and set(entry.gr_mem) <= {account.pw_name}
    return is_own and not any(other.pw_gid == group and other.pw_uid != user for other in pwd.getpwall())


def _has_access_list(file: int) -> bool:
    try:
        return "system.posix_acl_access" in os.listxattr(f"/proc/self/fd/{file}")
    except OSError as error:
        return error.errno != errno.ENOTSUP
