"""Joins and leaves the job, and gives this rank's place in it. No framework is needed.

Threads  any, but init() and shutdown() must not overlap each other.
"""

from __future__ import annotations

from typing import Any

from . import communicator
from . import process_sets as sets
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


def init(comm: Any = None, process_sets: Any = None) -> None:
    """Joins the job. A second call without shutdown() does nothing. After shutdown() a process may join again, as long
    as all ranks do.

    comm          an mpi4py communicator, whose ranks become the job: under mpirun, without the launcher. Or a list of
                  ranks, in the numbering of the launcher or mpirun, that become a job by themselves, numbered by their
                  place in the list; all of them give the same list. None: all ranks that runjob, mpirun or srun has
                  started.
    process_sets  the first ProcessSets, the same on all ranks. Or "dynamic": sets may be added and removed later, as
                  with HOROVOD_DYNAMIC_PROCESS_SETS=1.
    Blocks        until all ranks have called it, for at most the job's start timeout.
    Warns         on rank 0, if the program has initialized an MPI whose world has another number of ranks than the job.
    Errors        HorovodInternalError, which names the ranks that are missing or that give other sets; ValueError for
                  an invalid comm; ValueError for a set that is invalid or is given twice, in which case the process has
                  nevertheless joined the job with the other sets; RuntimeError for a list under mpirun without mpi4py.
    """
    is_new = not is_initialized()
    sets.join(comm, process_sets)
    if is_new and comm is None:
        communicator.warn_of_another_world()
