"""Commits of a state in the folder of --commit-dir, from which a restarted job continues.

Rank 0 writes them. It copies its newest commit when --commit-interval has passed, and a thread writes the copy while
training continues.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import warnings
from typing import Any, BinaryIO

from .. import job
from ..exceptions import InvalidArgumentError, MismatchError
from . import commit_file, tree
from .commit_file import BrokenCommitError, Header
from .commit_folder import CommitFolder
from .object_state import ObjectState
from .snapshot import form_of
from .state import State

_FOLDER, _INTERVAL = "RUNJOB_COMMIT_DIR", "RUNJOB_COMMIT_INTERVAL"
_DEFAULT_SECONDS = 600.0
_SHOWN_NUMBERS = 5

_users: list[State] = []  # the state whose commits are in the folder: the first state of the process


def stored_commits_of(state: State) -> StoredCommits | None:
    """The stored commits of the state. None without --commit-dir, and for all states of a process except the first one
    that asks.

    Errors  InvalidArgumentError for a state that is not an ObjectState, or that has a value which a StateHandler of the
            program keeps.
    """
    path = os.environ.get(_FOLDER)
    if not path or (_users and _users[0] is not state):
        return None
    if not isinstance(state, ObjectState):
        raise InvalidArgumentError(
            f"--commit-dir: a {type(state).__name__} has commits of its own, which cannot be written; use one of runjob's states, or start "
            "the job without --commit-dir"
        )
    if outside := state._outside_of_snapshot():
        raise InvalidArgumentError(
            f"--commit-dir: the state's {', '.join(outside)} cannot be written, since a StateHandler of the program keeps it; start the job "
            "without --commit-dir"
        )
    _users[:] = [state]
    return StoredCommits(state, CommitFolder(path), float(os.environ.get(_INTERVAL) or _DEFAULT_SECONDS))


class StoredCommits:
    """The commits of one state in one folder.

    Threads  the thread that trains. A thread of this object's own writes the files.
    """

    def __init__(self, state: ObjectState, folder: CommitFolder, interval_seconds: float) -> None:
        self._state = state
        self._folder = folder
        self._interval = interval_seconds
        self._due = time.monotonic() + interval_seconds
        self._is_written = True  # True if the newest commit of this rank is in the folder, or another rank writes it
        self._thread: threading.Thread | None = None

    def restore(self) -> bool:
        """Loads the newest whole commit of the folder into the state. Returns whether there is one. If so, a line names
        the file, its time and the state's numbers. A broken file causes a warning if an older one is whole.

        Errors  InvalidArgumentError: there are files, but none is whole, or the folder cannot be used.
                MismatchError: the commit belongs to another program.
        """
        problems = []
        for name in self._folder.names():
            path = os.path.join(self._folder.path, name)
            try:
                with self._folder.open(name) as file:
                    written = os.fstat(file.fileno()).st_mtime
                    self._load(file, path)
            except (BrokenCommitError, OSError) as error:
                problems.append(f"{path}: {error}")
                continue
            if problems:
                _warn(f"goes on from the older commit {path}, since the newer one cannot be used: {'; '.join(problems)}")
            print(f"runjob: the job goes on from {path}, {self._described(written)}", file=sys.stderr, flush=True)
            return True
        if problems:
            raise InvalidArgumentError(
                f"--commit-dir: no commit can be used: {'; '.join(problems)}; remove these files to begin anew, or name another folder"
            )
        return False

    def committed(self) -> None:
        """Notes that the state has a new commit. Writes it in the background if the interval has passed and the
        previous one has been written.
        """
        self._is_written = job.rank() != 0
        if self._is_written or time.monotonic() < self._due or (self._thread is not None and self._thread.is_alive()):
            return
        snapshot = self._state._snapshot
        arguments = (snapshot.outline, snapshot.forms(), snapshot.array_bytes(is_copied=True))
        self._is_written = True
        self._thread = threading.Thread(target=self._write, args=arguments, name="runjob commit")
        self._thread.start()

    def finish(self) -> None:
        """Waits for the thread. Then writes the newest commit unless it has been written."""
        if self._thread is not None:
            self._thread.join()
        snapshot = self._state._snapshot
        if not self._is_written and snapshot.is_whole:
            self._is_written = True
            self._write(snapshot.outline, snapshot.forms(), snapshot.array_bytes(is_copied=False))

    def _write(self, outline: dict[str, Any], forms: list[Any], arrays: list[memoryview]) -> None:
        try:
            self._folder.add(lambda file: commit_file.write(file, outline, forms, arrays))
        except Exception as error:  # training continues after any error
            self._is_written = False
            _warn(f"a commit was not written to {self._folder.path}: {error}; the job goes on, and the next one is tried")
        self._due = time.monotonic() + self._interval

    def _load(self, file: BinaryIO, path: str) -> None:
        header = commit_file.read_header(file)
        values = self._state._values()
        if set(header.names) != set(values):
            raise MismatchError(
                f"--commit-dir: {path} has the values {', '.join(sorted(header.names))}, and this program's state has "
                f"{', '.join(sorted(values))}; {_OTHER_PROGRAM}"
            )
        outline = commit_file.read_objects(file, header)
        self._check_forms(outline, header, values, path)
        snapshot = self._state._snapshot
        commit_file.read_arrays(file, header, snapshot.make_room(outline, header.forms))
        try:
            self._state._put_back()
        except MismatchError as error:
            raise MismatchError(f"--commit-dir: {path} does not fit this program: {error}; {_OTHER_PROGRAM}") from error

    def _described(self, written: float) -> str:
        """A text such as "the commit of 2026-11-28 12:00:05 with epoch=3, batch=20", with the time of this host and the
        first plain numbers.
        """
        numbers = [f"{name}={value}" for name, value in self._state._values().items() if type(value) in (bool, int, float)]
        shown = ", ".join(numbers[:_SHOWN_NUMBERS])
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(written))
        return f"the commit of {when}{' with ' if shown else ''}{shown}"

    def _check_forms(self, outline: dict[str, Any], header: Header, values: dict[str, Any], path: str) -> None:
        _, live = tree.split(values)
        for place, form in zip(tree.paths(outline), header.forms):
            if place in live and form_of(live[place]) != form:
                ours = form_of(live[place])
                raise MismatchError(
                    f"--commit-dir: {path} has {'.'.join(map(str, place))} with the shape {form.shape} and dtype {form.dtype}, and this "
                    f"program's has {ours.shape} and {ours.dtype}; {_OTHER_PROGRAM}"
                )


_OTHER_PROGRAM = "start the program that wrote it, name another folder, or remove its files to begin anew"


def _warn(text: str) -> None:
    warnings.warn(f"--commit-dir: {text}", RuntimeWarning, stacklevel=2)
