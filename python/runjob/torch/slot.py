"""One parameter's gradient on its way: how far it has come in a step, where it lies, and whether the program has changed it meanwhile."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, Callable

import torch

if TYPE_CHECKING:
    from .buckets import Alone, Bucket


class Slot:
    """One parameter's gradient, in all steps.

    passes       backward passes of a step; passes_left: those until it is complete. is_here: it has been taken, and not yet reduced.
    is_reduced   it has been, in this step.
    last_pass    the number of the backward pass in which it came last.
    view         its place in its bucket's memory, once that is there. It is given to nobody: p.grad is another tensor there.
    strides      of that place.
    address      where it is, or was in the memory before: 0 before the first, and for a place without elements.
    came_ns      when it was complete in this step, by time.monotonic_ns(), while a timeline is recorded.
    sparse_dims  of a gradient that travels as a sparse one; 0: it travels as a dense one, also when it is sparse.
    seen         p.grad when it was taken, or when a round ended that did not have it; with its version.
    left         refers to p.grad as the reduction, or a pass that is not the last one, has left it.
    """

    __slots__ = (
        "address", "came_ns", "hook", "is_here", "is_reduced", "last_pass", "left", "name", "parameter", "passes", "passes_left", "seen",
        "sparse_dims", "strides", "taker", "version", "view",
    )  # fmt: skip

    def __init__(self, parameter: torch.Tensor, name: str, passes: int) -> None:
        self.parameter = parameter
        self.name = name
        self.last_pass = -1
        self.came_ns = 0
        self.sparse_dims = 0
        self.taker: Bucket | Alone | None = None
        self.view: torch.Tensor | None = None
        self.strides: tuple[int, ...] = ()
        self.address = 0
        self.hook: Any = None
        self.begin(passes)

    def begin(self, passes: int) -> None:
        """A step begins, or the gradient was cleared: nothing has come."""
        self.passes = self.passes_left = passes
        self.is_here = self.is_reduced = False
        self.seen: torch.Tensor | None = None
        self.left: Callable[[], torch.Tensor | None] = _nothing

    def see(self, gradient: torch.Tensor | None) -> None:
        """Remembers p.grad, to notice that the program changes it or puts another tensor in its place."""
        self.seen = gradient
        self.version = _version(gradient)

    def is_as_seen(self) -> bool:
        gradient = self.parameter.grad
        return gradient is self.seen and _version(gradient) == self.version

    def is_left_out(self) -> bool:
        """Whether there is a gradient that no round of this step has reduced, and that is not left from an earlier step."""
        if self.is_reduced or self.parameter.grad is None:
            return False
        return self.passes_left < self.passes or not self.is_as_seen()

    def end_round(self, is_anywhere: bool) -> None:
        """The gradient of this rank, or of others, has been reduced; if there is none, it stays what it is."""
        gradient = self.parameter.grad
        self.is_here = False
        if is_anywhere:
            self.is_reduced, self.passes_left, self.seen = True, 0, None
            self.leave()
        else:
            self.see(gradient)

    def leave(self) -> None:
        """p.grad is left to the program, until a pass adds to it or a step is taken."""
        gradient = self.parameter.grad
        self.left = _nothing if gradient is None else weakref.ref(gradient)

    def was_cleared(self) -> bool:
        """Whether the gradient that was left has gone, or another one is in its place: a pass has begun it anew. A pass that makes a graph
        puts another one there too."""
        gradient = self.parameter.grad
        return gradient is None or (gradient is not self.left() and not gradient.requires_grad)


def _nothing() -> None:
    """A dead reference."""


def _version(gradient: torch.Tensor | None) -> int:
    """Counts the changes in place. A tensor of torch.inference_mode() has no count, and a view has that of all parts of its base."""
    try:
        return 0 if gradient is None or gradient._is_view() else gradient._version
    except RuntimeError:
        return 0
