"""All gradients of an optimizer in the buckets in which they are reduced, from one agreement of the ranks to the next."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Sequence

import torch

from ..exceptions import Error
from . import gpus
from .agreement import Agreement
from .bucket_plan import WHOLE_BYTES, Entry, plan
from .buckets import Alone, Bucket, GradientReduction, Slot
from .compression import FP16Compressor, NoneCompressor
from .host_words import HostWords


class Layout:
    """The buckets, the gradients that go alone, and the closing bucket, which also has the ranks' words about all others.

    name       of its operations among the ranks, different for each layout.
    slots      by name: those of the agreement that this layout is to have.
    """

    def __init__(
        self, name: str, slots: dict[str, Slot], agreement: Agreement, groups: int | Sequence[Sequence[str]] | None,
        reduction: GradientReduction,
    ) -> None:  # fmt: skip
        self._reduction = reduction
        self._agreement = agreement
        self._slots = slots
        self._groups = groups
        self._is_begun = False  # finish() has
        self._is_new = True
        entries = [
            Entry(each, self._memory(slots[each]), slots[each].parameter.nbytes, index < agreement.came)
            for index, each in enumerate(agreement.forms)
            if each in slots and not self._goes_alone(slots[each])
        ]
        alone = [slot for each, slot in slots.items() if self._goes_alone(slot)]
        extra = 1 + len(alone)
        self._host_words: HostWords | None = None
        if any(map(_is_on_gpu, slots.values())):
            self._host_words = HostWords(f"{name}.words", sum(_is_on_gpu(slots[entry.name]) for entry in entries), extra, reduction)
        planned = plan(entries, groups, closes=self._host_words is None)
        numbers = itertools.count()
        self.buckets = [self._bucket(f"{name}.bucket.{next(numbers)}", names) for names in planned.buckets]
        self.alone = [Alone(f"{name}.{slot.name}", slot, reduction) for slot in alone]
        self.closing = self._host_words or self._bucket(f"{name}.closing", planned.closing, extra)

    def finish(self, word: bool) -> bool:
        """Starts what has not begun, and waits for all. Whether the `word` of any rank was true. May be called again after a
        signal handler has raised.

        Errors  those of the reductions: the first, when all are over. That of a reduction that does not start, such as of complex numbers,
                when all that have started are over.
        """
        if not self._is_begun:
            try:
                self._begin_rest(word)
            except Exception:
                self.drop()
                raise
        failure = _outcome(self.closing)
        heard = [failure is not None or self.closing.hears(index) for index in range(1 + len(self.alone))]
        for bucket in self.buckets:
            failure = _outcome(bucket) or failure
        for each, is_anywhere in zip(self.alone, heard[1:]):
            failure = _outcome(each, is_anywhere) or failure
        self._is_begun = False
        if failure is not None:
            raise failure
        return heard[0]

    def _begin_rest(self, word: bool) -> None:
        takers: list[Bucket | Alone] = [*self.buckets, *self.alone]
        for taker in takers:
            if not taker.is_submitted:
                taker.submit()
                if self._is_new:
                    _give_back_memory()
        self._is_new = False
        self.closing.submit([word, *(each.slot.is_here for each in self.alone)])
        self._is_begun = True

    def begin_step(self) -> None:
        """Nothing has come yet."""
        takers: list[Bucket | Alone | HostWords] = [*self.buckets, *self.alone, self.closing]
        for taker in takers:
            taker.begin_step()

    def drop(self) -> None:
        """Waits for what is in flight, whatever becomes of it."""
        for taker in (*self.buckets, self.closing):
            _outcome(taker)
        for each in self.alone:
            _outcome(each, True)

    def was_changed(self) -> bool:
        """Whether somebody has written into a gradient that is being reduced."""
        return any(bucket.is_submitted and bucket.was_changed() for bucket in self.buckets)

    def _goes_alone(self, slot: Slot) -> bool:
        compression = self._reduction.compression
        if slot.sparse_dims > 0 or compression not in (NoneCompressor, FP16Compressor):
            return True
        is_large = compression is NoneCompressor and self._groups is None and slot.parameter.nbytes >= WHOLE_BYTES
        return is_large and self._agreement.forms[slot.name].is_row_major()

    def _memory(self, slot: Slot) -> tuple[torch.dtype, torch.device]:
        """What the gradient's bucket is made of. FP16Compressor is done by the copy into it."""
        parameter = slot.parameter
        is_compressed = self._reduction.compression is FP16Compressor and parameter.is_floating_point()
        return torch.float16 if is_compressed else parameter.dtype, parameter.device

    def _bucket(self, name: str, names: Sequence[str], extra: int = 0) -> Bucket:
        slots = [self._slots[each] for each in names]
        memory = self._memory(slots[0]) if slots else (torch.float32, torch.device("cpu"))
        if slots:
            name = f"{name}.{slots[0].name}" + (f"...{slots[-1].name}" if len(slots) > 1 else "")
        strides = [self._agreement.forms[each].strides for each in names]
        is_on_gpu = self._host_words is not None and any(map(_is_on_gpu, slots))
        words = self._host_words.take(len(slots)) if is_on_gpu else None
        return Bucket(name, slots, strides, memory, self._reduction, extra, words)


def _is_on_gpu(slot: Slot) -> bool:
    return gpus.is_on_gpu(slot.parameter)


def _give_back_memory() -> None:
    """To the system: that of gradients which have become views, and which are not all there at once in later steps."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:  # it is glibc's
        trim(0)


def _outcome(taker: Bucket | Alone | HostWords, *arguments: bool) -> Exception | None:
    """Waits for what is in flight."""
    try:
        if taker.is_submitted:
            taker.finish(*arguments)
    except (Error, AssertionError) as failure:
        return failure
    return None
