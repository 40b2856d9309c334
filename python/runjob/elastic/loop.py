"""run(): calls a function of a program again in each generation."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from .. import job
from .._library import library
from ..exceptions import (
    AbortedError,
    HorovodInternalError,
    HostsUpdatedInterrupt,
    MismatchError,
    NotInitializedError,
    PeerLostError,
    UnavailableError,
)
from .generation import commits, is_elastic, largest
from .state import State
from .stored_commits import stored_commits_of

Result = TypeVar("Result")

#: Errors that would occur again in another generation.
_NEVER_RETRIED = (MismatchError, UnavailableError, NotInitializedError)


def run(func: Callable[..., Result]) -> Callable[..., Result]:
    """A decorator for func(state, ...). It runs the function again from the last commit when a rank is lost or fails,
    and from the live state when hosts have changed. In a job that is not elastic, errors are raised.

    Never retried  MismatchError, UnavailableError, NotInitializedError.
    """

    @functools.wraps(func)
    def wrapper(state: State, *args: Any, **kwargs: Any) -> Result:
        if not job.is_initialized():
            raise NotInitializedError("runjob has not been initialized; call init() first")
        if not is_elastic():
            state.sync()
            return func(state, *args, **kwargs)
        return _Loop(state).run(lambda: func(state, *args, **kwargs))

    return wrapper


class _Loop:
    """The generations of one call of a function that run() has decorated."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._reason = ""  # the reason why this process cannot continue in its generation; empty if other processes are the reason
        self._must_restore = False
        self._stored = stored_commits_of(state)

    def run(self, function: Callable[[], Result]) -> Result:
        if self._stored is None:
            return self._generations(function)
        self._state._on_commit = self._stored.committed
        try:
            return self._generations(function)
        finally:
            self._state._on_commit = None
            self._stored.finish()

    def _generations(self, function: Callable[[], Result]) -> Result:
        must_meet, is_member = library().runjob_generation() < 0, True
        # No rank enters before rank 0 has read the file. Therefore a file that cannot be used ends the job at once, as
        # in a job of fixed size.
        is_restored = not must_meet and self._state._commit_number < 0 and self._restore_stored()
        job.check(library().runjob_elastic_enter())
        while True:
            try:
                if must_meet:
                    is_member = False
                    self._meet()
                    is_member, must_meet = True, False
                    self._begin_generation()
                else:
                    if is_restored:
                        self._state.on_reset()
                    self._sync([])
                self._state._steps_begun = 1
                return function()
            except HostsUpdatedInterrupt:
                self._state._commit_live()
                self._reason = ""
            except HorovodInternalError as error:
                if isinstance(error, _NEVER_RETRIED) or not is_member:
                    raise
                self._must_restore = True
                self._reason = "" if _is_loss(error) else f"{type(error).__name__}: {error}"
            must_meet = True

    def _meet(self) -> None:
        number = self._state._commit_number
        text = self._reason.encode(errors="replace")
        job.check(library().runjob_elastic_steps(self._state._steps_begun))
        self._state._steps_begun = 0
        job.join_generation(lambda: library().runjob_elastic_meet(number, text))

    def _begin_generation(self) -> None:
        if self._must_restore:
            self._state.restore()  # nothing of the previous generation is in flight any more
            self._must_restore = False
        brought = commits()
        if max(brought) < 0:
            self._restore_stored()
        self._state.on_reset()
        self._sync(brought)

    def _restore_stored(self) -> bool:
        """If no rank has a commit, rank 0 reads the newest one of --commit-dir. Returns on all ranks whether there is one."""
        if self._stored is None:
            return False
        is_there = job.rank() == 0 and self._stored.restore()
        return bool(largest(is_there, "runjob.elastic.stored"))

    def _sync(self, brought: list[int]) -> None:
        """Synchronizes the state. `brought` has the commit numbers of the ranks; it is [] in the generation in which
        run() was entered.
        """
        state = self._state
        newest = max(brought, default=-1)
        if newest >= 0:
            state._receives = brought[job.rank()] < newest
        try:
            state.sync()
        finally:
            state._receives = None
        if not getattr(type(state).sync, "leaves_a_commit", False):
            state.save()
        state._note_newest(max(0, newest if brought else state._commits))


def _is_loss(error: HorovodInternalError) -> bool:
    """True if another rank is the cause, which the launcher notices by itself."""
    return isinstance(error, (PeerLostError, AbortedError))
