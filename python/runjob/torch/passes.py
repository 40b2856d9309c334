"""Backward passes: PyTorch's engine calls back at the end of each one in which a gradient of an optimizer has come.

A pass has a number, its graph task in PyTorch. A pass may run inside another one: so does a checkpoint with `use_reentrant=True`, which
computes the gradients of its part of the model by a pass of its own. The end of such a pass is not the end of the gradients: it is
handed on to the pass around it. A pass that raises ends without a call back, and PyTorch then drops the object that it was to call.

Threads  a pass calls back on the thread that ends it: with GPUs that is one of PyTorch's own.
"""

from __future__ import annotations

import weakref
from typing import Any, Protocol

import torch

current_pass = torch._C._current_graph_task_id  #: The number of the pass that this thread runs, -1 outside of one.


class Owner(Protocol):
    """Takes part in passes: the gradients of an optimizer."""

    def serving_order(self) -> tuple[Any, ...]:
        """The same on all ranks: those of one pass are served in this order."""

    def begin_round(self) -> bool:
        """Sends what has come and not yet been sent; False when nothing has. Does not block, if it has sent before."""

    def end_round(self) -> None:
        """Waits for what begin_round() has sent."""

    def is_handed_on(self) -> None:
        """The pass has ended inside another one, which is not known yet. The next one that the owner enters is that one, or inside of it."""


class _Pass:
    """PyTorch's engine owns it, from the first gradient to the end of the pass."""

    def __init__(self) -> None:
        self._owners: dict[Owner, None] = {}
        self.is_over = False

    def add(self, owner: Owner) -> None:
        self._owners[owner] = None

    def has(self, owner: Owner) -> bool:
        return owner in self._owners and not self.is_over

    def __call__(self) -> None:
        self.is_over = True
        around = torch._C._current_autograd_node()  # the node that began this pass, while another pass evaluates it
        if around is None:
            _serve(list(self._owners))
        else:
            _hand_on(list(self._owners), around)


_running: weakref.WeakValueDictionary[int, _Pass] = weakref.WeakValueDictionary()  # by number


def enter(owner: Owner) -> None:
    """A gradient of `owner` has come in the pass that this thread runs: its end will serve the owner."""
    number = current_pass()
    running = _running.get(number)
    if running is None:
        running = _running[number] = _Pass()
        torch.autograd.Variable._execution_engine.queue_callback(running)  # type: ignore[attr-defined]
    running.add(owner)


def is_in_a_pass(owner: Owner) -> bool:
    """Whether a pass runs that will serve the owner."""
    return any(running.has(owner) for running in list(_running.values()))


def _hand_on(owners: list[Owner], around: Any) -> None:
    """The owners enter the pass around this one when it evaluates its next node: a pass cannot be entered from within another one."""
    handles: list[Any] = []

    def enter_all(gradients: Any) -> None:
        for handle in handles:
            handle.remove()
        handles.clear()
        for owner in owners:
            enter(owner)

    for owner in owners:
        owner.is_handed_on()
    handles += [node.register_prehook(enter_all) for node, _ in around.next_functions if node is not None]


def _serve(owners: list[Owner]) -> None:
    """All send before any waits, so that ranks on which the pass has reached other owners do not wait for each other.

    Errors  the first one, when all have ended.
    """
    failure: Exception | None = None
    begun = []
    for owner in sorted(owners, key=lambda owner: owner.serving_order()):
        try:
            if owner.begin_round():
                begun.append(owner)
        except Exception as error:
            failure = failure or error
    for owner in begun:
        try:
            owner.end_round()
        except Exception as error:
            failure = failure or error
    if failure is not None:
        raise failure
