"""One parameter's gradient during a step: how many passes have accumulated it, where it lies, and whether the program
has changed it.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, Callable

import torch

if TYPE_CHECKING:
    from .buckets import Alone, Bucket


class Slot:
    """One parameter's gradient, in all steps.

    passes       backward passes of a step; passes_left: those until it is complete. is_here: it has been taken and not
                 yet reduced.
    is_reduced   it has been reduced in this step.
    last_pass    the number of the backward pass in which it was last accumulated.
    view         its place in its bucket's memory, when the bucket has memory. The program never gets this tensor:
                 p.grad is another tensor there.
    strides      the strides of that place.
    address      its address, or its address in the previous memory. 0 before the first, and for a place without
                 elements.
    completed_ns the time when it was completed in this step, by time.monotonic_ns(), while a timeline is recorded.
    sparse_dims  the sparse dimensions of a gradient that is sent as a sparse one. 0: it is sent as a dense one, also if
                 it is sparse.
    seen         p.grad when it was taken, or when a round ended that did not have it; with its version.
    left         refers to p.grad in the state in which the reduction, or a pass that is not the last one, has left it.
    """

    __slots__ = (
        "address", "completed_ns", "hook", "is_here", "is_reduced", "last_pass", "left", "name", "parameter", "passes", "passes_left", "seen",
        "sparse_dims", "strides", "taker", "version", "view",
    )  # fmt: skip

    def __init__(self, parameter: torch.Tensor, name: str, passes: int) -> None:
        self.parameter = parameter
        self.name = name
        self.last_pass = -1
        self.completed_ns = 0
        self.sparse_dims = 0
        self.taker: Bucket | Alone | None = None
        self.view: torch.Tensor | None = None
        self.strides: tuple[int, ...] = ()
        self.address = 0
        self.hook: Any = None
        self.begin(passes)

    def begin(self, passes: int) -> None:
        """Begins a step, or begins again after the gradient was cleared: no pass has accumulated it."""
        self.passes = self.passes_left = passes
        self.is_here = self.is_reduced = False
        self.seen: torch.Tensor | None = None
        self.left: Callable[[], torch.Tensor | None] = _nothing

    def see(self, gradient: torch.Tensor | None) -> None:
        """Remembers p.grad, to notice if the program changes it or replaces it by another tensor."""
        self.seen = gradient
        self.version = _version(gradient)

    def is_as_seen(self) -> bool:
        gradient = self.parameter.grad
        return gradient is self.seen and _version(gradient) == self.version

    def is_left_out(self) -> bool:
        """True if there is a gradient that no round of this step has reduced, and that is not left from an earlier step."""
        if self.is_reduced or self.parameter.grad is None:
            return False
        return self.passes_left < self.passes or not self.is_as_seen()

    def end_round(self, is_anywhere: bool) -> None:
        """Ends a round that has reduced the gradient of this rank or of others. If no rank has it, it stays unchanged."""
        gradient = self.parameter.grad
        self.is_here = False
        if is_anywhere:
            self.is_reduced, self.passes_left, self.seen = True, 0, None
            self.leave()
        else:
            self.see(gradient)

    def leave(self) -> None:
        """Leaves p.grad to the program, until a pass adds to it or a step is taken."""
        gradient = self.parameter.grad
        self.left = _nothing if gradient is None else weakref.ref(gradient)

    def was_cleared(self) -> bool:
        """True if the gradient that was left is gone or replaced by another one, because a pass has begun it again. A
        pass that makes a graph also replaces it.
        """
        gradient = self.parameter.grad
        return gradient is None or (gradient is not self.left() and not gradient.requires_grad)


def _nothing() -> None:
    """Returns None, as a dead weak reference does."""


def _version(gradient: torch.Tensor | None) -> int:
    """The number of changes in place. A tensor of torch.inference_mode() has no count, and a view has that of all parts
    of its base.
    """
    try:
        return 0 if gradient is None or gradient._is_view() else gradient._version
    except RuntimeError:
        return 0
