"""The commit of a state: a copy whose arrays are in the same memory each time."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from . import tree
from .array_kinds import Form, kind_named, kind_of

#: The forms of arrays, by block.
Layout = list[list[Form]]

_ALIGNMENT_BYTES = 64


class _Block:
    """Copies of some arrays, one after the other in one piece of memory. `far` has the copies that lie on a device
    instead, and None for all others.
    """

    def __init__(self, forms: list[Form], far: list[Any]) -> None:
        self.forms = forms
        self.far = far
        self._ends = _ends(forms, far)
        self._memory = bytearray(self._ends[-1] if forms else 0)
        whole = memoryview(self._memory)
        self.copies = [
            kind_named(form.kind).copy_in(form, whole[begin : begin + form.nbytes]) if each is None else each
            for form, each, begin in zip(forms, far, [0, *self._ends])
        ]

    def shorten(self, count: int) -> None:
        """Keeps the first `count` copies. The memory remains."""
        del self.forms[count:], self.far[count:], self.copies[count:], self._ends[count:]

    def bytes(self) -> memoryview:
        """The memory of the copies that do not lie on a device."""
        return memoryview(self._memory)[: self._ends[-1] if self._ends else 0]

    def array_bytes(self) -> list[memoryview]:
        """The memory of each copy, in a block without copies on a device."""
        whole = memoryview(self._memory)
        return [whole[begin : begin + form.nbytes] for form, begin in zip(self.forms, [0, *self._ends])]

    def twin(self) -> _Block:
        """A block with the same values and memory of its own, without copies on a device."""
        block = self.here()
        if block is self:
            block = _Block(self.forms, [None] * len(self.forms))
            block.bytes()[:] = self.bytes()
        return block

    def here(self) -> _Block:
        """A block with the same values, without copies on a device."""
        if all(each is None for each in self.far):
            return self
        block = _Block(self.forms, [None] * len(self.forms))
        for form, copy, value in zip(self.forms, block.copies, self.copies):
            kind_named(form.kind).save(copy, value)
        return block


def _ends(forms: list[Form], far: list[Any]) -> list[int]:
    ends, end = [], 0
    for form, each in zip(forms, far):
        end += 0 if each is not None else -(-form.nbytes // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES
        ends.append(end)
    return ends


class Prepared(NamedTuple):
    """The arrays that Snapshot.keep() copies: into the first `known` copies of the snapshot, and into those of `block`."""

    outline: dict[str, Any]
    arrays: list[Any]
    known: int
    block: _Block


class Snapshot:
    """A copy of values by name. prepare() may fail and then changes nothing. keep() overwrites the previous copies of
    the arrays.

    Attributes  outline   the plain objects, with Places for the arrays; {} before the first copy.
                is_whole  false while arrays are copied, and after a copy that was interrupted.
    """

    def __init__(self) -> None:
        self.outline: dict[str, Any] = {}
        self.is_whole = False
        self._blocks: list[_Block] = []

    def prepare(self, values: Mapping[str, Any]) -> Prepared:
        """Copies the plain objects, and provides memory for arrays that are new or have changed their form.

        Errors  ValueError for a value that cannot be copied.
        """
        outline, by_path = tree.split(values)
        arrays = list(by_path.values())
        forms = list(map(form_of, arrays))
        is_far = [kind_named(form.kind).is_far(value) for form, value in zip(forms, arrays)]
        plain = tree.copied(outline)
        known = self._common(forms, is_far)
        new = list(zip(forms, arrays, is_far))[known:]
        far = [kind_named(form.kind).copy_beside(value) if each else None for form, value, each in new]
        return Prepared(plain, arrays, known, _Block(forms[known:], far))

    def keep(self, prepared: Prepared) -> None:
        """Copies the arrays."""
        self.is_whole = False
        self._shorten(prepared.known)
        if prepared.block.forms:
            self._blocks.append(prepared.block)
        for form, copy, value in zip(self.forms(), self.copies(), prepared.arrays):
            kind_named(form.kind).save(copy, value)
        self.outline = prepared.outline
        self.is_whole = True

    def forms(self) -> list[Form]:
        """The forms of the arrays, by index."""
        return [form for block in self._blocks for form in block.forms]

    def copies(self) -> list[Any]:
        """The copies of the arrays, by index. They remain the snapshot's."""
        return [copy for block in self._blocks for copy in block.copies]

    def layout(self) -> Layout:
        """The forms of the arrays that are sent together, by block."""
        return [block.forms for block in self._blocks]

    def array_bytes(self, is_copied: bool) -> list[memoryview]:
        """The bytes of each array, by index. If `is_copied`, they are in memory of their own. Otherwise those of arrays
        that do not lie on a device are the snapshot's memory.
        """
        blocks = (block.twin() if is_copied else block.here() for block in self._blocks)
        return [each for block in blocks for each in block.array_bytes()]

    def make_room(self, outline: dict[str, Any], forms: list[Form]) -> Iterator[memoryview]:
        """The memory into which the caller writes the bytes of each array from another source, by index. The snapshot
        is whole when the iterator is exhausted.
        """
        self.is_whole = False
        block = _Block(list(forms), [None] * len(forms))
        self.outline, self._blocks = outline, [block]
        yield from block.array_bytes()
        self.is_whole = True

    def sent(self) -> list[memoryview]:
        """The bytes of all arrays, by block. They are the snapshot's memory, except for copies of arrays that lie on a
        device.
        """
        return [block.here().bytes() for block in self._blocks]

    @contextlib.contextmanager
    def receiving(self, outline: dict[str, Any], layout: Layout) -> Iterator[list[memoryview]]:
        """The memory into which the caller receives the blocks of another rank's snapshot. The snapshot is whole at the
        end, unless the caller raises.
        """
        self.is_whole = False
        self.outline, self._blocks = outline, []
        self._blocks = [_Block(list(forms), [None] * len(forms)) for forms in layout]
        yield [block.bytes() for block in self._blocks]
        self.is_whole = True

    def _common(self, forms: list[Form], is_far: list[bool]) -> int:
        """The number of the first copies that can be used again."""
        were_far = [each is not None for block in self._blocks for each in block.far]
        pairs = zip(zip(forms, is_far), zip(self.forms(), were_far))
        return next((index for index, (one, other) in enumerate(pairs) if one != other), min(len(forms), len(were_far)))

    def _shorten(self, count: int) -> None:
        kept = []
        for block in self._blocks:
            if count > 0:
                kept.append(block)
                count -= len(block.forms)
        if count < 0:
            kept[-1].shorten(len(kept[-1].forms) + count)
        self._blocks = kept


def form_of(array: Any) -> Form:
    """The Form of an array of any kind."""
    kind = kind_of(array)
    assert kind is not None
    return kind.form(array)


def block_sizes(layout: Layout) -> list[int]:
    """The number of bytes of each block that is sent of a snapshot with this layout."""
    return [_ends(forms, [None] * len(forms))[-1] if forms else 0 for forms in layout]
