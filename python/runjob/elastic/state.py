"""The base class of all states, from which training continues."""

from __future__ import annotations

import collections
import sys
from collections.abc import Callable, Iterable
from typing import Any

from .. import job, objects
from ..exceptions import HostsUpdatedInterrupt
from .generation import is_elastic, largest, pending

_REMOVED = 1  # Horovod's number of a change in which hosts were only removed; 2 if they were only added


class State:
    """A state from which training continues. Subclasses define save(), restore() and sync(), and may override all other
    methods.

    bcast_object, get_rank  the functions that replace broadcast_object() and rank().

    Attributes  _commit_number  the number of this process's newest commit; -1 if it has none that is whole.
                _commits        how often all ranks have committed, counting commits that failed on this rank.
                _steps_begun    the number of steps since this process's newest commit. A step begins in elastic.run(),
                                and with each check for changed hosts that finds none.
                _receives       while elastic.run() calls sync() after a meeting: whether this process lacks the newest
                                commit. At other times None, because rank 0's state counts.
                _on_commit      a function that is called after each commit of this process.
    """

    def __init__(self, bcast_object: Callable[..., Any] | None = None, get_rank: Callable[[], int] | None = None) -> None:
        self._bcast_object = bcast_object or objects.broadcast_object
        self._rank = get_rank or job.rank
        self._reset_callbacks: list[Callable[[], Any]] = []
        self._commit_number = self._commits = -1
        self._steps_begun = 0
        self._receives: bool | None = None
        self._on_commit: Callable[[], None] | None = None
        self._host_messages = Notices()
        self._last_updated_timestamp: float = 0

    def register_reset_callbacks(self, callbacks: Iterable[Callable[[], Any]]) -> None:
        """Registers functions. Each of them runs once in each generation after the first one, before sync(), with
        size() of the generation.
        """
        self._reset_callbacks.extend(callbacks)

    def on_reset(self) -> None:
        """Runs once in each generation after the first one: calls reset(), then the callbacks."""
        self._host_messages.take(0)
        self.reset()
        for callback in self._reset_callbacks:
            callback()

    def on_hosts_updated(self, timestamp: float, update_res: int) -> None:
        """Requests another generation of all ranks at their next check. update_res: Horovod's number of the change."""
        self._host_messages.put((timestamp, update_res))

    def commit(self) -> None:
        """Saves the state, then checks for changed hosts. All ranks call it together.

        Errors  HostsUpdatedInterrupt, on all ranks in the same call; those of save(), and of operations in
                flight.
        """
        if is_elastic():
            job.check_all()  # values on a GPU are valid when all operations have ended without an error
        self._commit_live()
        self.check_host_updates()

    def check_host_updates(self) -> None:
        """Checks whether hosts have changed. All ranks call it together. In an elastic job it costs one small
        allreduce, in another job nothing. If hosts have changed, it costs one more allreduce and a wait for the
        operations in flight, so that no rank leaves the generation before all of them have ended on every rank.

        Errors  HostsUpdatedInterrupt on all ranks in the same call; SystemExit(0) on a rank that is to leave.
        """
        own = self._host_messages.take(self._last_updated_timestamp)
        if own:
            self._last_updated_timestamp = max(time for time, _ in own)
        if not is_elastic():
            if own:
                raise HostsUpdatedInterrupt(skip_sync=all(change == _REMOVED for _, change in own))
            return
        update, is_leaving = pending()
        if not largest(update or bool(own), "runjob.elastic.check"):
            self._steps_begun += 1
            return
        job.check_all()
        largest(0, "runjob.elastic.settled")
        if is_leaving:
            sys.exit(0)  # the job does not need this process any more
        raise HostsUpdatedInterrupt(skip_sync=False)

    def save(self) -> None:
        """Copies the state. If this raises, the previous copy is still whole, or _commit_number is -1."""
        raise NotImplementedError

    def restore(self) -> None:
        """Restores the copy."""
        raise NotImplementedError

    def sync(self) -> None:
        """Sends all ranks the state of rank 0. Runs on all ranks."""
        raise NotImplementedError

    def reset(self) -> None:
        """Runs in each generation after the first one, before the callbacks."""

    def _commit_live(self) -> None:
        """Commits without a check for changed hosts, after all operations have ended: the values that they write on a
        GPU may be wrong before. A rank whose save() raises keeps its number, and counts the commit as the others do.
        """
        self._commits += 1
        self.save()
        self._commit_number = self._commits
        self._steps_begun = 0
        if self._on_commit is not None:
            self._on_commit()

    def _note_newest(self, number: int) -> None:
        """Gives this process's commit the number `number`, and so notes that it is the newest one."""
        self._commit_number = self._commits = number


class Notices:
    """The queue of a state. Horovod's driver puts (time, change) into it, and scripts written for Horovod read it. It
    is also non-empty while the launcher asks for the next generation.
    """

    def __init__(self) -> None:
        self._given: collections.deque[tuple[float, int]] = collections.deque()

    def put(self, notice: tuple[float, int]) -> None:
        """Adds a notice of the program."""
        self._given.append(notice)

    def empty(self) -> bool:
        """True if neither the program nor the launcher asks for the next generation."""
        return not self._given and not (job.is_initialized() and is_elastic() and pending()[0])

    def take(self, after: float) -> list[tuple[float, int]]:
        """The notices of the program that are younger than `after`. All notices are removed."""
        taken = [notice for notice in self._given if notice[0] > after]
        self._given.clear()
        return taken
