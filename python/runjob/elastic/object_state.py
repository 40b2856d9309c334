"""The state of a program in plain Python objects and arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from .. import job
from . import tree
from .array_kinds import kind_named
from .generation import transfer
from .snapshot import Layout, Snapshot, block_sizes, form_of
from .state import State


class ObjectState(State):
    """Python objects: each keyword becomes an attribute. A commit has deep copies of them. NumPy's arrays among them,
    also those in dicts, lists and tuples, are copied into the same memory each time.

    bcast_object, get_rank  as for State.
    Errors  ValueError for a value that cannot be copied.
    """

    def __init__(
        self, bcast_object: Callable[..., Any] | None = None, get_rank: Callable[[], int] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(bcast_object, get_rank)
        self._names = list(kwargs)
        self._snapshot = Snapshot()
        for name, value in kwargs.items():
            setattr(self, name, value)
        self._keep()

    def save(self) -> None:
        """Copies the plain objects, which may fail and then changes nothing. Then copies the arrays."""
        self._keep()

    def restore(self) -> None:
        """Restores the copy: into the existing arrays, and as new objects. Does nothing on a rank whose commit is not
        whole, because it receives the commit of another rank.
        """
        if self._snapshot.is_whole:
            self._put_back()

    def sync(self) -> None:
        """Sends all ranks the plain objects of rank 0, and its arrays to the ranks without the newest commit.
        Afterwards all ranks have a commit.

        Errors  HorovodInternalError and its kinds.
        """
        is_root = self._rank() == 0
        lacks_arrays = not is_root if self._receives is None else self._receives
        if not lacks_arrays:
            self._keep()
        outline, layout = self._bcast_object((self._snapshot.outline, self._snapshot.layout()))
        lacks_arrays = any(layout) and (lacks_arrays or not self._has_arrays_of(outline, layout))
        if any(layout) and job.is_initialized() and job.size() > 1:
            self._transfer_arrays(is_root, lacks_arrays, outline, layout)
        if is_root:
            return
        if lacks_arrays:
            self._put_back()
        else:
            self._snapshot.outline = tree.copied(outline)
            self._set_values(tree.join(outline, list(tree.split(self._values())[1].values())))

    sync.leaves_a_commit = True  # type: ignore[attr-defined]  # elastic.run() needs no save() after it

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:  # access to the program's attributes
            ...

    def _values(self) -> dict[str, Any]:
        """The values of a commit, by name."""
        return {name: getattr(self, name) for name in self._names}

    def _set_values(self, values: Mapping[str, Any]) -> None:
        """The inverse of _values(). Arrays may be the ones that the state has already."""
        for name, value in values.items():
            setattr(self, name, value)

    def _outside_of_snapshot(self) -> list[str]:
        """The names of values that the snapshot does not have."""
        return []

    def _keep(self) -> None:
        prepared = self._snapshot.prepare(self._values())
        number, self._commit_number = self._commit_number, -1  # an interrupted copy is no commit
        self._snapshot.keep(prepared)
        self._commit_number = number

    def _put_back(self) -> None:
        _, live = tree.split(self._values())
        arrays = []
        for path, form, copy in zip(tree.paths(self._snapshot.outline), self._snapshot.forms(), self._snapshot.copies()):
            kind = kind_named(form.kind)
            is_there = path in live and form_of(live[path]) == form
            arrays.append(kind.restore(live[path], copy) if is_there else kind.new(copy))
        self._set_values(tree.join(tree.copied(self._snapshot.outline), arrays))

    def _has_arrays_of(self, outline: Mapping[str, Any], layout: Layout) -> bool:
        """True if this rank's commit has arrays in the same places and of the same forms as another rank's."""
        forms = [form for block in layout for form in block]
        return self._snapshot.forms() == forms and tree.paths(self._snapshot.outline) == tree.paths(outline)

    def _transfer_arrays(self, is_root: bool, lacks_arrays: bool, outline: dict[str, Any], layout: Layout) -> None:
        """Sends the arrays of rank 0 to the ranks that lack them. The other ranks take no part."""
        sizes = block_sizes(layout)
        if is_root:
            transfer(self._snapshot.sent(), sizes, lacks=False)
        elif lacks_arrays:
            self._commit_number = -1
            with self._snapshot.receiving(outline, layout) as room:
                transfer(room, sizes, lacks=True)
        else:
            transfer([], sizes, lacks=False)
