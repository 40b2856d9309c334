"""Process sets: subsets of the job's ranks in which collectives run. The argument `process_set=` of every operation
takes one.

Each set works by itself: sets may overlap, and no set waits for ranks outside of it. init(process_sets=[...]) makes
sets, and so does add_process_set() in a job that allows it. Ranks are always numbered as in the job, `root_rank` too.

Threads  any, but all ranks add and remove sets in the same order.
Errors   NotInitializedError before init(). ValueError for ranks that cannot be a set, for a set that is not registered,
         and for an operation of a set that this rank is not in.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from ctypes import byref, c_int32
from typing import Any

from . import job
from ._library import library


class ProcessSet:
    """A set of ranks. The constructor takes ranks of the job in any order, or an mpi4py communicator of some of them.

    init() or add_process_set() registers it, until remove_process_set() or shutdown(). While it is not registered,
    `process_set_id`, size(), rank() and included() are None.
    """

    mpi_comm: Any = None

    def __init__(self, ranks_or_comm: Iterable[int] | Any) -> None:
        if hasattr(ranks_or_comm, "Get_group"):
            self.mpi_comm = ranks_or_comm
            ranks_or_comm = _ranks_of_communicator(ranks_or_comm)
        if not isinstance(ranks_or_comm, Iterable) or isinstance(ranks_or_comm, (str, bytes)):
            raise ValueError(f"ProcessSet takes a list of ranks or an mpi4py communicator, not {ranks_or_comm!r}")
        ranks = list(ranks_or_comm)
        if any(isinstance(rank, bool) or not hasattr(rank, "__index__") for rank in ranks):
            raise ValueError(f"ProcessSet takes a list of ranks or an mpi4py communicator, not {ranks!r}")
        self._ranks = sorted(rank.__index__() for rank in ranks)
        self._registered: tuple[int, int] | None = None  # the job's number, and the library's number of the set
        self._is_by_hand = False  # True if the program has set the number

    @property
    def process_set_id(self) -> int | None:
        """The library's number, the same on all ranks. A program can set it, to that of a set with these ranks or to
        None. This registers nothing with the other ranks.
        """
        registered = self._registered
        if registered is None or registered[0] != job.generation() or not job.is_initialized():
            return None
        return registered[1]

    @process_set_id.setter
    def process_set_id(self, number: int | None) -> None:
        self._registered = None if number is None else (job.generation(), int(number))
        self._is_by_hand = True

    @property
    def ranks(self) -> list[int] | None:
        """The ranks of the set, in ascending order."""
        return list(self._ranks)

    def size(self) -> int | None:
        """The number of ranks in the set."""
        return None if self.process_set_id is None else len(self._ranks)

    def rank(self) -> int | None:
        """The index of this rank in the set. Errors  ValueError if this rank is not in it."""
        if self.process_set_id is None:
            return None
        if not self.included():
            raise ValueError(f"rank {job.rank()} is not in {self}")
        return self._ranks.index(job.rank())

    def included(self) -> bool | None:
        """True if this rank is in the set."""
        return None if self.process_set_id is None else job.rank() in self._ranks

    def __str__(self) -> str:
        return f"ProcessSet(process_set_id={self.process_set_id}, ranks={self.ranks}, mpi_comm={self.mpi_comm})"

    def _register(self, number: int) -> None:
        self._registered = (job.generation(), number)
        self._is_by_hand = False

    def _invalidate(self) -> None:
        self._registered = None


class GlobalProcessSet(ProcessSet):
    """All ranks of the job: the default of every `process_set=`."""

    process_set_id = 0

    def __init__(self) -> None:
        super().__init__([])

    @property
    def ranks(self) -> list[int] | None:
        return list(range(job.size())) if job.is_initialized() else None

    def size(self) -> int | None:
        return job.size() if job.is_initialized() else None

    def rank(self) -> int | None:
        return job.rank() if job.is_initialized() else None

    def included(self) -> bool | None:
        return True if job.is_initialized() else None


global_process_set = GlobalProcessSet()

_lock = threading.Lock()
_epochs: dict[int, int] = {}  # by the number of a set: how many sets had been added when it got this number
_added = 0


def add_process_set(process_set: ProcessSet | Sequence[int]) -> ProcessSet:
    """Adds a set, and returns it, registered. All ranks of the job call it with the same ranks, also those that are not
    in the set. It blocks until all have called it. Numbers of removed sets are used again.

    Errors  ValueError for a set that exists already, for ranks that the job does not have, and in a job that does not
            allow it: it needs init(process_sets="dynamic") or HOROVOD_DYNAMIC_PROCESS_SETS=1. HorovodInternalError when
            the ranks ask for different sets, or cannot connect.
    """
    if not isinstance(process_set, ProcessSet):
        process_set = ProcessSet(process_set)
    ranks, number = process_set.ranks or [], c_int32()
    array = (c_int32 * len(ranks))(*ranks)
    job.call_interruptibly(lambda: library().runjob_process_set_add(array, len(ranks), byref(number)))
    _adopt(process_set, number.value)
    return process_set


def remove_process_set(process_set: ProcessSet) -> bool:
    """Removes a set. All ranks call it. Operations in flight in the set end with an error. Returns False for a set that
    is not registered, and for the set of all ranks.

    Errors  ValueError in a job that does not allow it, see add_process_set(); HorovodInternalError when the ranks
            disagree.
    """
    number = process_set.process_set_id
    if number is None or number == 0:
        return False
    job.call_interruptibly(lambda: library().runjob_process_set_remove(number))
    process_set._invalidate()
    return True


def get_process_set_ids_and_ranks() -> dict[int, list[int]]:
    """The ranks of all sets of the job, by number."""
    numbers = _list_of(library().runjob_process_set_ids)
    return {number: _list_of(lambda *room, n=number: library().runjob_process_set_ranks(n, *room)) for number in numbers}


def identifier(process_set: ProcessSet) -> int:
    """The C interface's number for `process_set`. Errors  ValueError for a value that is not a set, or is not registered."""
    number = process_set.process_set_id if isinstance(process_set, ProcessSet) else None
    if number is not None and not (process_set._is_by_hand and library().runjob_process_set_size(number) < 0):
        return number
    if not isinstance(process_set, ProcessSet):
        raise ValueError(f"process_set={process_set!r} is not a ProcessSet")
    raise ValueError(f"{process_set} is not registered: give it to init(process_sets=[...]) or add_process_set() first")


def check_number(number: int) -> None:
    """Errors  ValueError for a number that no set of the job has."""
    if job.is_initialized() and library().runjob_process_set_size(number) < 0:
        known = ", ".join(map(str, get_process_set_ids_and_ranks()))
        raise ValueError(f"there is no process set {number}; those of this job are {known}")


def size_of(process_set: ProcessSet) -> int:
    """The number of ranks in a set, for an operation. Errors  as identifier()."""
    identifier(process_set)
    return job.size() if process_set.process_set_id == 0 else len(process_set._ranks)


def rank_in(process_set: ProcessSet) -> int:
    """The index of this rank in a set, for an operation. It is 0 if this rank is not in the set, which the library
    refuses. Errors  as identifier().
    """
    identifier(process_set)
    if process_set.process_set_id == 0:
        return job.rank()
    return process_set._ranks.index(job.rank()) if job.rank() in process_set._ranks else 0


def epoch(number: int) -> tuple[int, int]:
    """A value that changes when `number` becomes the number of another set, and for the set of all ranks when all have
    joined. Counters of a set begin anew then.
    """
    return job.generation(), job.joins() if number == 0 else _epochs.get(number, 0)


def join(place: Callable[[tuple[Any, ...]], Callable[[], None]], process_sets: Sequence[ProcessSet] | str | None) -> None:
    """Joins the job for init(), which describes `process_sets`. `place` gets the library's arguments for them, and returns
    the function that joins the job.
    """
    dynamic = isinstance(process_sets, str) and process_sets.lower() == "dynamic"
    if isinstance(process_sets, str) and not dynamic:
        raise ValueError(f'init(process_sets={process_sets!r}): give a list of ProcessSet, or "dynamic"')
    sets: list[Any] = [] if dynamic or process_sets is None else list(process_sets)
    if not all(isinstance(each, ProcessSet) for each in sets):
        raise ValueError(f'init(process_sets={process_sets!r}): give a list of ProcessSet, or "dynamic"')
    refusal = _join(place, [each for each in sets if not isinstance(each, GlobalProcessSet)], dynamic)
    numbers = {tuple(ranks): number for number, ranks in get_process_set_ids_and_ranks().items()} if sets else {}
    seen = {0}
    for index, each in enumerate(sets):
        number = numbers.get(tuple(each.ranks or []))
        if number is None or number in seen:
            each._invalidate()
            what = "does not exist" if number is None else "is a duplicate"
            refusal = refusal or ValueError(f"entry {index} of init(process_sets=...) {what}: {each}")
            continue
        seen.add(number)
        _adopt(each, number)
    if refusal is not None:
        raise refusal


def _join(
    place: Callable[[tuple[Any, ...]], Callable[[], None]], sets: list[ProcessSet], dynamic: bool
) -> ValueError | None:
    """Joins the job unless this process is in one. Returns a fault of the sets if the process is then in the job."""
    unique = {tuple(each.ranks or []): None for each in sets}
    flat = [rank for ranks in unique for rank in ranks]
    arguments = (
        (c_int32 * len(flat))(*flat), (c_int32 * len(unique))(*map(len, unique)), len(unique), int(dynamic),
    )  # fmt: skip
    if job.is_initialized():
        return None
    join_with = place(arguments)
    try:
        join_with()
    except ValueError as error:
        if not job.is_initialized():
            raise
        return error
    return None


def _adopt(process_set: ProcessSet, number: int) -> None:
    global _added
    with _lock:
        _added += 1
        _epochs[number] = _added
    process_set._register(number)


def _list_of(function: Callable[..., int]) -> list[int]:
    """The numbers that a function of the library gives whose arguments are an array, its length, and the result's length."""
    count = c_int32()
    job.check(function(None, 0, byref(count)))
    room = (c_int32 * count.value)()
    job.check(function(room, len(room), byref(count)))
    return room[: count.value]


def _ranks_of_communicator(communicator: Any) -> list[int]:
    """The ranks of an mpi4py communicator, as MPI's world numbers them. They are the job's ranks if MPI has started the
    job with as many.
    """
    from mpi4py import MPI

    if not isinstance(communicator, MPI.Comm):
        raise ValueError(f"ProcessSet takes a list of ranks or an mpi4py communicator, not {communicator!r}")
    group, world = communicator.Get_group(), MPI.COMM_WORLD.Get_group()
    return list(MPI.Group.Translate_ranks(group, list(range(group.Get_size())), world))
