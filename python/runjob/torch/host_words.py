"""The words of an optimizer's buckets on GPUs, in the CPU's memory. Reading them there does not wait for a GPU."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import torch

from .. import handles
from ..handles import Call
from .buckets import GradientReduction


class HostWords:
    """The words are reduced once in each step, after the buckets. This replaces a closing bucket: on a GPU, launching a
    separate reduction for the last gradients takes longer than reducing them.

    extra  the number of the owner's words.
    """

    def __init__(self, name: str, count: int, extra: int, reduction: GradientReduction) -> None:
        self._name = name
        self._reduction = reduction
        memory = (ctypes.c_float * (count + extra))()
        self._words = torch.frombuffer(memory, dtype=torch.float32)
        # The same words; PyTorch needs microseconds to access an element of a tensor.
        self._values = memoryview(memory).cast("B").cast("f")
        self._taken = 0
        self._first_extra = count
        self._handle = 0  # 0 before the first reduction
        self._call: Call | None = None

    def take(self, count: int) -> memoryview[float]:
        """Memory for the words of a bucket."""
        first, self._taken = self._taken, self._taken + count
        return self._values[first : self._taken]

    @property
    def is_submitted(self) -> bool:
        return self._handle in handles.in_flight()

    def begin_step(self) -> None:
        """Does nothing."""

    def count(self) -> None:
        """Does nothing."""

    def submit(self, is_final: bool, extra: Sequence[bool]) -> None:
        """Starts the reduction, when all buckets have written their words. extra: the owner's words."""
        for index, word in enumerate(extra, self._first_extra):
            self._values[index] = self._reduction.word(word)
        self._call, self._handle = self._reduction.start_again(self._call, self._words, self._name)

    def finish(self) -> None:
        """Waits for the reduction. Errors  those of the reduction, which has ended also after an error."""
        handles.synchronize(self._handle)

    def is_any(self, index: int) -> bool:
        """True if the owner's word `index` was True on any rank. To be called after finish()."""
        return self._reduction.is_any(self._values[self._first_extra + index])
