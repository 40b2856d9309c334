"""Backward passes: PyTorch's engine calls back at the end of each pass that accumulates a gradient of an optimizer.

A pass has a number, that of its graph task in PyTorch. A pass may run inside of another one: a checkpoint with
`use_reentrant=True` computes the gradients of its part of the model by a pass of its own. The end of such a pass is not
the end of the gradients, so it is handed on to the pass around it. A pass that raises ends without a call back, and
PyTorch then deletes the object that it would have called.

Threads  a pass calls back on the thread that ends it. With GPUs that is one of PyTorch's own threads.
"""

from __future__ import annotations

import weakref
from typing import Any, Protocol

import torch

current_pass = torch._C._current_graph_task_id  #: The number of the pass that this thread runs, -1 outside of one.


class Owner(Protocol):
    """Takes part in passes: the gradients of an optimizer."""

    def serving_order(self) -> tuple[Any, ...]:
        """A key that is the same on all ranks. The owners of one pass are served in its order."""

    def begin_round(self) -> bool:
        """Sends the completed gradients that have not been sent yet. Returns False if there are none. Does not block,
        if it has sent before.
        """

    def end_round(self) -> None:
        """Waits for the reductions that begin_round() has started."""

    def note_handed_on(self) -> None:
        """Notes that the pass has ended inside of another one, which is not known yet. The next pass that the owner
        enters is that one, or inside of it.
        """


class _Pass:
    """A running pass. PyTorch's engine owns it, from the first gradient to the end of the pass."""

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
    """Notes that a gradient of `owner` was accumulated in the pass that this thread runs, whose end will serve the owner."""
    number = current_pass()
    running = _running.get(number)
    if running is None:
        running = _running[number] = _Pass()
        torch.autograd.Variable._execution_engine.queue_callback(running)  # type: ignore[attr-defined]
    running.add(owner)


def is_in_a_pass(owner: Owner) -> bool:
    """True if a pass is running that will serve the owner."""
    return any(running.has(owner) for running in list(_running.values()))


def _hand_on(owners: list[Owner], around: Any) -> None:
    """Lets the owners enter the pass around this one when that evaluates its next node: a pass cannot be entered from
    inside of another one.
    """
    handles: list[Any] = []

    def enter_all(gradients: Any) -> None:
        for handle in handles:
            handle.remove()
        handles.clear()
        for owner in owners:
            enter(owner)

    for owner in owners:
        owner.note_handed_on()
    handles += [node.register_prehook(enter_all) for node, _ in around.next_functions if node is not None]


def _serve(owners: list[Owner]) -> None:
    """Serves the owners. All of them send before any waits, so that ranks do not wait for each other on which the pass
    has reached other owners.

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
