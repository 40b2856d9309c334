"""The folder of --commit-dir. Its files are numbered, and the last two are kept.

A file gets its name when all of it is on the disk. The folder and the files belong to this user, and no other user may
write to them: the contents of the files are unpickled, and a user who may write to the folder can rename them. A link
is not followed if it is the folder or a file, nor if it is a part of the folder's path that another user could have put
there.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Callable, Iterator
from typing import BinaryIO

from ..exceptions import InvalidArgumentError
from .folder_walk import open_folder, others_may_write

_NAME = re.compile(r"commit-(\d+)\.safetensors")
_PART = re.compile(r"commit-\d+\.safetensors\.part")
_KEPT = 2


class CommitFolder:
    """Threads  one at a time. Errors  every function raises InvalidArgumentError for a folder that cannot be used."""

    def __init__(self, path: str) -> None:
        self.path = path

    def names(self) -> list[str]:
        """The names of the files, the newest first."""
        with self._opened() as folder:
            return self._names(folder)

    def open(self, name: str) -> BinaryIO:
        """Opens one of the files for reading. Errors  OSError, also for a file that does not belong to this user or
        that others may write to; its text gives the reason.
        """
        with self._opened() as folder:
            file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=folder)
        try:
            info = os.fstat(file)
            if not stat.S_ISREG(info.st_mode):
                raise OSError("it is no file")
            if info.st_uid != os.geteuid():
                raise OSError(f"it belongs to user {info.st_uid}, and this process to user {os.geteuid()}")
            if others_may_write(file):
                raise OSError(f"others may write to it (mode {stat.S_IMODE(info.st_mode):o})")
        except BaseException:
            os.close(file)
            raise
        return os.fdopen(file, "rb")

    def add(self, write: Callable[[BinaryIO], None]) -> str:
        """Makes the next file and returns its name. The file exists only if `write` has written all of it. Then all
        files except the last two are removed.

        Errors  OSError; those of `write`.
        """
        with self._opened() as folder:
            for left in filter(_PART.fullmatch, os.listdir(folder)):
                os.unlink(left, dir_fd=folder)  # left by a job that was killed
            names = self._names(folder)
            name = f"commit-{_number(names[0]) + 1 if names else 1:08}.safetensors"
            part = f"{name}.part"
            file = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder)
            try:
                with os.fdopen(file, "wb", 1 << 20) as stream:
                    write(stream)
                    stream.flush()
                    os.fsync(stream.fileno())
                os.rename(part, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(part, dir_fd=folder)
                raise
            os.fsync(folder)
            for old in names[_KEPT - 1 :]:
                os.unlink(old, dir_fd=folder)
            return name

    @contextlib.contextmanager
    def _opened(self) -> Iterator[int]:
        """A descriptor of the folder, which is made if it is missing."""
        try:
            way, name = os.path.split(self.path.rstrip("/"))
            parent = open_folder(way)
            try:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, 0o700, dir_fd=parent)
                folder = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
            finally:
                os.close(parent)
        except OSError as error:
            reason = "it is a link" if os.path.islink(self.path) else error.strerror
            raise InvalidArgumentError(
                f"--commit-dir: cannot use {self.path}: {reason}; name a folder of your own on a file system that all hosts share"
            ) from error
        try:
            owner = os.fstat(folder).st_uid
            if owner != os.geteuid():
                raise InvalidArgumentError(
                    f"--commit-dir: {self.path} belongs to user {owner}, and this process to user {os.geteuid()}; name a folder of your own"
                )
            if others_may_write(folder):
                raise InvalidArgumentError(f"--commit-dir: others may write to {self.path}; chmod go-w {self.path}")
            yield folder
        finally:
            os.close(folder)

    def _names(self, folder: int) -> list[str]:
        return sorted(filter(_NAME.fullmatch, os.listdir(folder)), key=_number, reverse=True)


def _number(name: str) -> int:
    found = _NAME.fullmatch(name)
    assert found is not None
    return int(found[1])
