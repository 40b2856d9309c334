"""Elastic training: a function that goes on with other ranks when some are lost or added, and the state that it goes on from.

    state = runjob.elastic.ObjectState(step=0)

    @runjob.elastic.run
    def train(state):
        while state.step < 1000:
            ...
            state.step += 1
            state.commit()

Every State has a commit: a copy that this process restores when a rank is lost. Commits are numbered, and all ranks bring the number
of their newest one to the meeting at which the next generation forms.

Threads  the one that runs the function.
"""

from __future__ import annotations

import copy
import functools
import sys
from collections.abc import Callable, Iterable
from ctypes import byref, c_int32, c_int64
from typing import Any, TypeVar

from . import handles, job, objects
from ._library import library
from .exceptions import AbortedError, HorovodInternalError, HostsUpdatedInterrupt, MismatchError, NotInitializedError, UnavailableError
from .process_sets import global_process_set

Result = TypeVar("Result")

#: Errors that another generation would meet again.
_NEVER_RETRIED = (MismatchError, UnavailableError, NotInitializedError)


class State:
    """What training goes on from. Subclasses define save(), restore() and sync(), and may override all other methods.

    Attributes  _commit_number, of the newest commit of this process; -1: it has none.
    """

    def __init__(self, bcast_object: Callable[..., Any] | None = None, get_rank: Callable[[], int] | None = None, **kwargs: Any) -> None:
        self._bcast_object = bcast_object or objects.broadcast_object
        self._rank = get_rank or job.rank
        self._reset_callbacks: list[Callable[[], Any]] = []
        self._commit_number = -1
        self._last_updated_timestamp = 0
        super().__init__(**kwargs)

    def register_reset_callbacks(self, callbacks: Iterable[Callable[[], Any]]) -> None:
        """Each of them runs once in each generation after the first one, before sync(), with its size()."""
        self._reset_callbacks.extend(callbacks)

    def on_reset(self) -> None:
        self.reset()
        for callback in self._reset_callbacks:
            callback()

    def commit(self) -> None:
        """Saves the state, then checks for changed hosts. Errors  HostsUpdatedInterrupt, on all ranks in the same call."""
        self._commit_live()
        self.check_host_updates()

    def _commit_live(self) -> None:
        self.save()
        self._commit_number += 1

    def check_host_updates(self) -> None:
        """All ranks call it together. Costs one small allreduce in an elastic job, nothing in another.

        Errors  HostsUpdatedInterrupt on all ranks in the same call; SystemExit(0) on a rank that is to leave.
        """
        if not is_elastic():
            return
        update, leaving = pending()
        update = _largest(update)
        if not update:
            return
        if leaving:
            _end()
        raise HostsUpdatedInterrupt(skip_sync=False)

    def save(self) -> None:
        """Copies the state. When this raises, the copy before is still whole."""
        raise NotImplementedError

    def restore(self) -> None:
        """Puts the copy back."""
        raise NotImplementedError

    def sync(self) -> None:
        """Gives all ranks rank 0's state. Called on all ranks."""
        raise NotImplementedError

    def reset(self) -> None:
        """Called in each generation after the first one, before the callbacks."""


class ObjectState(State):
    """Plain Python objects: each keyword becomes an attribute. Commits are deep copies."""

    def __init__(
        self, bcast_object: Callable[..., Any] | None = None, get_rank: Callable[[], int] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(bcast_object, get_rank)
        self._saved_state: dict[str, Any] = kwargs
        self._set_attributes(kwargs)
        self._saved_state = copy.deepcopy(kwargs)

    def save(self) -> None:
        self._saved_state = copy.deepcopy({name: getattr(self, name) for name in self._saved_state})

    def restore(self) -> None:
        self._set_attributes(copy.deepcopy(self._saved_state))

    def sync(self) -> None:
        if self._saved_state:
            live = {name: getattr(self, name) for name in self._saved_state}
            self._set_attributes(self._bcast_object(live))
            self.save()

    def _set_attributes(self, values: dict[str, Any]) -> None:
        for name, value in values.items():
            setattr(self, name, value)


def is_elastic() -> bool:
    """Whether this process is in an elastic job."""
    return bool(library().runjob_elastic() == 1)


def pending() -> tuple[int, bool]:
    """What the launcher asks of this process: 0, 1 (only added) or 2, and whether this process is to leave."""
    update, leaving = c_int32(), c_int32()
    job.check(library().runjob_elastic_pending(byref(update), byref(leaving)))
    return update.value, bool(leaving.value)


def commits() -> list[int]:
    """The commit number that each rank has brought to this generation."""
    numbers = (c_int64 * job.size())()
    job.check(library().runjob_elastic_commits(numbers))
    return list(numbers)


def run(func: Callable[..., Result]) -> Callable[..., Result]:
    """A decorator for func(state, ...): runs it again from the last commit when a rank is lost or fails, and from the live state
    when hosts have changed. In a job that is not elastic errors are raised.

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
    """The generations of one call of a function that elastic.run() has."""

    def __init__(self, state: State) -> None:
        self._state = state

    def run(self, function: Callable[[], Result]) -> Result:
        job.check(library().runjob_elastic_enter())
        reason, must_meet = "", library().runjob_generation() < 0
        while True:
            try:
                if must_meet:
                    self._meet(reason)
                    must_meet = False
                    self._state.on_reset()
                self._state.sync()
                self._state._commit_number = max(0, self._state._commit_number, *commits())
                return function()
            except HostsUpdatedInterrupt:
                self._state._commit_live()
                reason = ""
            except HorovodInternalError as error:
                if isinstance(error, _NEVER_RETRIED) or must_meet:
                    raise
                self._state.restore()
                reason = "" if _is_loss(error) else f"{type(error).__name__}: {error}"
            must_meet = True

    def _meet(self, reason: str) -> None:
        number = self._state._commit_number
        text = reason.encode(errors="replace")
        job.join_generation(lambda: library().runjob_elastic_meet(number, text))


def _is_loss(error: HorovodInternalError) -> bool:
    """Whether another rank is the cause, which the launcher sees by itself."""
    from .exceptions import PeerLostError

    return isinstance(error, (PeerLostError, AbortedError))


def _largest(update: int) -> int:
    payload = bytearray([update])
    answers: bytearray = handles.run(objects._calls.allgather(payload, "runjob.elastic.check", global_process_set))
    return max(answers)


def _end() -> None:
    """Ends this process, which the job does not need any more."""
    sys.exit(0)
