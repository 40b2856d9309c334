"""What training goes on from: the base of all states."""

from __future__ import annotations

import collections
import sys
from collections.abc import Callable, Iterable
from typing import Any

from .. import job, objects
from ..exceptions import HostsUpdatedInterrupt
from .generation import is_elastic, largest, pending

_REMOVED = 1  # Horovod's number of a change in which hosts were only removed; 2: only added


class State:
    """What training goes on from. Subclasses define save(), restore() and sync(), and may override all other methods.

    bcast_object, get_rank  functions to use instead of broadcast_object() and rank().

    Attributes  _commit_number  of the newest commit of this process; -1: it has none that is whole.
                _commits        how often all ranks have committed, also when it failed here.
                _steps_begun    steps since this process's newest commit; one begins in elastic.run(), and with each check for changed hosts
                                that finds none.
                _receives       while elastic.run() calls sync() after a meeting: whether this process lacks the newest commit. None at
                                other times: rank 0's state is what counts.
                _on_commit      called after each commit of this process.
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
        """Each of them runs once in each generation after the first one, before sync(), with its size()."""
        self._reset_callbacks.extend(callbacks)

    def on_reset(self) -> None:
        """Called once in each generation after the first one: reset(), then the callbacks."""
        self._host_messages.take(0)
        self.reset()
        for callback in self._reset_callbacks:
            callback()

    def on_hosts_updated(self, timestamp: float, update_res: int) -> None:
        """Has all ranks meet for another generation at their next check. update_res: Horovod's number of the change."""
        self._host_messages.put((timestamp, update_res))

    def commit(self) -> None:
        """Saves the state, then checks for changed hosts. All ranks call it together.

        Errors  HostsUpdatedInterrupt, on all ranks in the same call; those of save(), and of operations that are in flight.
        """
        if is_elastic():
            job.check_all()  # values on a GPU are valid once all operations have ended without an error
        self._commit_live()
        self.check_host_updates()

    def check_host_updates(self) -> None:
        """All ranks call it together. Costs one small allreduce in an elastic job, nothing in another; when hosts have changed, one more,
        and a wait for the operations in flight, so that no rank leaves the generation before all of them have ended on every rank.

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
        """Copies the state. When this raises, the copy before is still whole, or _commit_number is -1."""
        raise NotImplementedError

    def restore(self) -> None:
        """Puts the copy back."""
        raise NotImplementedError

    def sync(self) -> None:
        """Gives all ranks the state of rank 0. Called on all ranks."""
        raise NotImplementedError

    def reset(self) -> None:
        """Called in each generation after the first one, before the callbacks."""

    def _commit_live(self) -> None:
        """A commit without the check for hosts, after all operations have ended: what they write on a GPU may be wrong before. A rank whose
        save() raises keeps its number, and counts on with the others.
        """
        self._commits += 1
        self.save()
        self._commit_number = self._commits
        self._steps_begun = 0
        if self._on_commit is not None:
            self._on_commit()

    def _has_newest(self, number: int) -> None:
        """This process's commit is now the one with this number."""
        self._commit_number = self._commits = number


class Notices:
    """The queue of a state into which Horovod's driver puts (time, change), and into which its scripts look. It has something in it also while
    the launcher asks for the next generation."""

    def __init__(self) -> None:
        self._given: collections.deque[tuple[float, int]] = collections.deque()

    def put(self, notice: tuple[float, int]) -> None:
        """Adds one of the program's own."""
        self._given.append(notice)

    def empty(self) -> bool:
        """True when nothing asks for the next generation."""
        return not self._given and not (job.is_initialized() and is_elastic() and pending()[0])

    def take(self, after: float) -> list[tuple[float, int]]:
        """The program's own that are younger than `after`; all are forgotten."""
        taken = [notice for notice in self._given if notice[0] > after]
        self._given.clear()
        return taken
