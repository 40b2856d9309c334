"""The set of all ranks. Sets of some ranks come with a later version."""

from __future__ import annotations

from . import basics


class GlobalProcessSet:
    """All ranks of the job: the default of every `process_set=`."""

    process_set_id = 0
    mpi_comm = None

    @property
    def ranks(self) -> list[int] | None:
        return list(range(basics.size())) if basics.is_initialized() else None

    def size(self) -> int | None:
        return basics.size() if basics.is_initialized() else None

    def rank(self) -> int | None:
        return basics.rank() if basics.is_initialized() else None

    def included(self) -> bool | None:
        return True if basics.is_initialized() else None

    def __str__(self) -> str:
        return f"ProcessSet(process_set_id=0, ranks={self.ranks}, mpi_comm=None)"


global_process_set = GlobalProcessSet()


def identifier(process_set: GlobalProcessSet) -> int:
    """The C interface's number for `process_set`. Errors  NotImplementedError for any but the global one."""
    if not isinstance(process_set, GlobalProcessSet):
        raise NotImplementedError(
            f"process_set={process_set!r}: process sets are not in this version of runjob; they come with a later one"
        )
    return process_set.process_set_id
