"""All gradients of an optimizer in the buckets in which they are reduced, from one agreement of the ranks to the next
one.

Threads  the threads of the backward pass, one at a time, and the thread that steps.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Sequence
from typing import NamedTuple

import torch

from ..exceptions import Error
from . import gpus
from .agreement import Agreement
from .bucket_plan import WHOLE_BYTES, Entry, plan
from .buckets import Alone, Bucket, GradientReduction
from .compression import FP16Compressor, NoneCompressor
from .host_words import HostWords
from .slot import Slot


#: The number of phases that words distinguish. Gradients of ranks that are this many phases apart are taken for those of
#: one phase.
PHASES = 3


class Words(NamedTuple):
    """The announcements of a rank to all at the end of a round, and their combination: True if it is True on any rank.

    is_changed    the rank has seen a parameter that is new, frozen or unfrozen.
    has_fault     the rank has found a fault, which it explains when all ranks know of it. Different phases of ranks are
                  a fault.
    is_left_over  the rank has a gradient that was accumulated in too few passes.
    phase         the number of the rank's steps, and of the evaluations of closures in them.
    """

    is_changed: bool
    has_fault: bool
    is_left_over: bool
    phase: int


class Layout:
    """The buckets, the gradients that are reduced alone, and the closing bucket, which also has the ranks' words about
    all others.

    name       the name of the layout's operations among the ranks, which differs for each layout.
    slots      the slots by name. Their gradients are those of the agreement.
    bucket_bytes      the size of its buckets, on which the ranks have agreed.
    bytes_in_buckets  those of all gradients that are not reduced alone.
    """

    def __init__(
        self, name: str, slots: dict[str, Slot], agreement: Agreement, groups: int | Sequence[Sequence[str]] | None,
        reduction: GradientReduction,
    ) -> None:  # fmt: skip
        self._reduction = reduction
        self._agreement = agreement
        self.slots = slots
        self._groups = groups
        self.is_begun = False  # True when the round has sent everything
        self._is_new = True
        entries = [
            Entry(each, self._memory(slots[each]), slots[each].parameter.nbytes, index < agreement.completed)
            for index, each in enumerate(agreement.forms)
            if each in slots and not self._goes_alone(slots[each])
        ]
        self.bucket_bytes = agreement.bucket_bytes
        self.bytes_in_buckets = sum(entry.nbytes for entry in entries)
        alone = [slot for each, slot in slots.items() if self._goes_alone(slot)]
        extra = 3 + PHASES + len(alone)
        self._host_words: HostWords | None = None
        if any(map(_is_on_gpu, slots.values())):
            self._host_words = HostWords(f"{name}.words", sum(_is_on_gpu(slots[entry.name]) for entry in entries), extra, reduction)
        planned = plan(entries, agreement.bucket_bytes, groups, closes=self._host_words is None)
        numbers = itertools.count()
        self.buckets = [self._bucket(f"{name}.bucket.{next(numbers)}", names) for names in planned.buckets]
        self.alone = [Alone(_name_of(name, [slot]), slot, reduction) for slot in alone]
        self.closing = self._host_words or self._bucket(f"{name}.closing", planned.closing, extra)
        self._takers: list[Bucket | Alone] = [*self.buckets, *self.alone]

    def begin_round(self, is_final: bool, words: Words) -> None:
        """Sends all gradients that have not been sent yet. Buckets whose gradients were all reduced in this step are
        left out.

        is_final  gradients that are not complete count as complete.
        Errors    the error of a reduction that does not start, such as of complex numbers, when all started reductions
                  have ended.
        """
        try:
            for taker in self._takers:
                if taker.is_reduced:
                    taker.leave_out()
                elif not taker.is_submitted:
                    taker.submit(is_final)
                    if self._is_new:
                        _give_back_memory()
            self._is_new = False
            phases = [words.phase % PHASES == phase for phase in range(PHASES)]
            self._phase = words.phase
            self.closing.submit(is_final, [*words[:3], *phases, *(each.slot.is_here for each in self.alone)])
        except Exception:
            self.drop()
            raise
        self.is_begun = True

    def end_round(self) -> Words:
        """Waits for all reductions. Returns the combined announcements of the ranks. May be called again after a signal
        handler has raised.

        Errors  those of the reductions: the first one, when all have ended.
        """
        failure = _outcome(self.closing)
        if failure is not None:
            self.drop()
            raise failure
        is_changed, has_fault, is_left_over, *rest = map(self.closing.is_any, range(3 + PHASES + len(self.alone)))
        has_fault = has_fault or sum(rest[:PHASES]) > 1
        if has_fault:
            for taker in self._takers:
                if not taker.is_submitted:  # left out here, but maybe not on a rank in another phase
                    taker.submit(False)
        for bucket in self.buckets:
            failure = _outcome(bucket) or failure
        for each, is_anywhere in zip(self.alone, rest[PHASES:]):
            failure = _outcome(each, is_anywhere) or failure
        self.is_begun = False
        if failure is not None and not has_fault:
            raise failure
        return Words(is_changed, has_fault, is_left_over, self._phase)

    @property
    def is_in_flight(self) -> bool:
        """True if something has been sent in this round."""
        return self.is_begun or any(taker.is_submitted for taker in self._takers)

    def begin_step(self) -> None:
        """Begins a step, in which no gradient has been completed yet."""
        for taker in (*self._takers, self.closing):
            taker.begin_step()

    def count(self) -> None:
        """Counts the missing gradients again, after gradients were discarded."""
        for taker in (*self._takers, self.closing):
            taker.count()

    def drop(self) -> None:
        """Waits for the reductions in flight, and ignores their errors."""
        for taker in (*self.buckets, self.closing):
            _outcome(taker)
        for each in self.alone:
            _outcome(each, True)
        self.is_begun = False

    def changed_gradient(self) -> str | None:
        """The name of a gradient that the program has changed, replaced or removed since it was taken."""
        for slot in self.slots.values():
            if slot.is_here and not slot.is_as_seen():
                return slot.name
        return None

    def _goes_alone(self, slot: Slot) -> bool:
        compression = self._reduction.compression
        if slot.sparse_dims > 0 or compression not in (NoneCompressor, FP16Compressor):
            return True
        is_large = compression is NoneCompressor and self._groups is None and slot.parameter.nbytes >= WHOLE_BYTES
        return is_large and self._agreement.forms[slot.name].is_row_major()

    def _memory(self, slot: Slot) -> tuple[torch.dtype, torch.device]:
        """The dtype and device of the gradient's bucket. FP16Compressor is applied by the copy into the bucket."""
        parameter = slot.parameter
        is_compressed = self._reduction.compression is FP16Compressor and parameter.is_floating_point()
        return torch.float16 if is_compressed else parameter.dtype, parameter.device

    def _bucket(self, name: str, names: Sequence[str], extra: int = 0) -> Bucket:
        slots = [self.slots[each] for each in names]
        memory = self._memory(slots[0]) if slots else (torch.float32, torch.device("cpu"))
        strides = [self._agreement.forms[each].strides for each in names]
        is_on_gpu = self._host_words is not None and any(map(_is_on_gpu, slots))
        words = self._host_words.take(len(slots)) if is_on_gpu else None
        return Bucket(_name_of(name, slots), slots, strides, memory, self._reduction, extra, words)


def _name_of(name: str, slots: Sequence[Slot]) -> str:
    """The name of an operation in messages and the timeline: it begins with the parameters, which users know."""
    if not slots:
        return name
    return slots[0].name + (f"...{slots[-1].name}" if len(slots) > 1 else "") + f" ({name})"


def _is_on_gpu(slot: Slot) -> bool:
    return gpus.is_on_gpu(slot.parameter)


def _give_back_memory() -> None:
    """Returns memory to the system: that of gradients which have become views. In later steps these do not all exist at
    the same time.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:  # trim() exists in glibc only
        trim(0)


def _outcome(taker: Bucket | Alone | HostWords, *arguments: bool) -> Exception | None:
    """Waits for a reduction in flight. Returns its exception, or None."""
    try:
        if taker.is_submitted:
            taker.finish(*arguments)
    except Error as failure:
        return failure
    return None
