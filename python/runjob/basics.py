"""Joins and leaves the job, and gives this rank's place in it. No framework is needed.

Threads  any, but init() and shutdown() must not overlap each other.
"""

from __future__ import annotations

from typing import Any

from . import communicator
from . import process_sets as sets
from .exchange import Exchange
from .job import (
    cross_rank,
    cross_size,
    is_homogeneous,
    is_initialized,
    local_rank,
    local_size,
    rank,
    shutdown,
    size,
    start_timeline,
    stop_timeline,
)

__all__ = [
    "cross_rank", "cross_size", "init", "is_homogeneous", "is_initialized", "local_rank", "local_size", "rank", "shutdown", "size",
    "start_timeline", "stop_timeline",
]  # fmt: skip


def init(
    comm: Any = None, process_sets: Any = None, *, exchange: Exchange | None = None, rank: int | None = None, size: int | None = None
) -> None:
    """Joins the job. A second call without shutdown() does nothing. After shutdown() a process may join again, as long
    as all ranks do.

    comm          an mpi4py communicator, whose ranks become the job: under mpirun, without the launcher. Or a list of
                  ranks, in the numbering of the launcher or mpirun, that become a job by themselves, numbered by their
                  place in the list; all of them give the same list. None: all ranks that runjob, mpirun or srun has
                  started.
    process_sets  the first ProcessSets, the same on all ranks. Or "dynamic": sets may be added and removed later, as
                  with HOROVOD_DYNAMIC_PROCESS_SETS=1.
    exchange      for `size` processes that can reach each other already, by a store, by pipes or by a launcher of their
                  own: a function that takes the bytes of this process and returns those of all, in a list by rank. All
                  processes call it equally often, in the same order, in a thread of runjob's, before init() returns.
                  runjob's variables for a place in a job are then not read. Whoever takes part in the exchange can be
                  a rank.
    rank, size    with `exchange`: this process's rank, from 0, and the number of processes.
    Blocks        until all ranks have called it, for at most the job's start timeout.
    Warns         on rank 0, if the program has initialized an MPI whose world has another number of ranks than the job.
    Errors        HorovodInternalError, which names the ranks that are missing or that give other sets; ValueError for
                  an invalid comm, exchange or place; ValueError for a set that is invalid or is given twice, in which
                  case the process has nevertheless joined the job with the other sets; RuntimeError for a list under
                  mpirun without mpi4py. The exception of an exchange that raises; WaitTimeoutError for one that takes
                  longer than the job's start timeout.
    """
    is_new = not is_initialized()
    if exchange is None and rank is None and size is None:
        sets.join(lambda arguments: communicator.placed(comm, arguments), process_sets)
        if is_new and comm is None:
            communicator.warn_of_another_world()
    elif comm is not None:
        raise ValueError("init(): give comm, or exchange with rank and size, and not both")
    else:
        sets.join(lambda arguments: communicator.by_exchange(exchange, rank, size, arguments), process_sets)
