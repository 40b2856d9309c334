"""The gradients of one optimizer: noticed when they come, reduced in buckets while the backward pass goes on, waited for in its step.

In the first step nothing is sent before synchronize(): there the ranks tell each other what gradients they have, and in which order
those came. They do so again after a step in which a rank has seen a parameter that is new, frozen or unfrozen; that it has is one
of the words that travel with every step's gradients. And they do so in the first step after all of them have joined. So the ranks
always have the same buckets.

The ranks know an optimizer by its number among those of its process set, in the order of their first agreements: these block, so that
the order is the same on all ranks. It would not be the order in which optimizers are made: a rank that comes to an elastic job later
has made fewer of them.

Threads  those of the backward pass, one at a time, and the one that steps.
"""

from __future__ import annotations

import itertools
import warnings
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from .. import job, process_sets
from ..process_sets import ProcessSet
from .agreement import agree, form_of
from .buckets import Alone, Bucket, GradientReduction, Slot
from .layout import Layout
from .parameter_names import add_names

_numbers: dict[int, tuple[object, Iterator[int]]] = {}  # of optimizers, by process set: since when, and the next ones


class Gradients:
    """is_active  whether there is another rank to reduce with; without one, nothing is noticed and nothing done.

    name             the same on all ranks; empty before their first agreement.
    names            of all parameters. sparse_as_dense: as given to DistributedOptimizer.
    """

    def __init__(
        self, names: dict[torch.Tensor, str], reduction: GradientReduction, passes: int, groups: int | list[list[str]] | None,
        sparse_as_dense: bool,
    ) -> None:  # fmt: skip
        self.names = names
        self._reduction = reduction
        self._groups = groups
        self.sparse_as_dense = sparse_as_dense
        self.passes = passes
        self._slots: dict[torch.Tensor, Slot] = {}
        self._noticed: list[Slot] = []  # the same ones; for when this has ended
        weakref.finalize(self, _release_all, self._noticed)
        self._begin_job()

    def _begin_job(self) -> None:
        """Also after another init(): other ranks, other memory, and nothing in flight any more. And when all ranks have joined: one
        that joined early does not know what the others have agreed on since.
        """
        process_set = self._reduction.process_set
        is_alone = job.size() == 1
        self._generation, self._joins = job.generation(), job.joins()
        self.is_active = not is_alone and bool(process_set.included()) and process_set.size() > 1
        self._layout: Layout | None = None
        self.name = ""
        self._agreements = 0
        self._is_changed = False
        self._came: list[str] | None = []  # names in the order of their coming, while that is to be learnt
        self._complete = 0
        for slot in self._slots.values():
            slot.taker, slot.view = None, None
        self.begin_step()

    def begin_step(self) -> None:
        """Nothing has come yet."""
        self._complete = 0
        for slot in self._slots.values():
            slot.passes_left, slot.is_here = self.passes, False
        if self._layout is not None:
            self._layout.begin_step()

    def _is_of_another_job(self) -> bool:
        """A forked child, which is in no job, goes on alone where its parent did."""
        return self._generation != job.generation() and (self.is_active or job.is_initialized())

    def are_in_flight(self) -> bool:
        """Whether a gradient is complete, and not yet reduced."""
        return self._complete > 0

    def parameters(self) -> set[torch.Tensor]:
        """Those whose gradients are noticed."""
        return set(self._slots)

    def in_flight(self) -> dict[torch.Tensor, tuple[None, None]]:
        """The parameters whose gradients are complete, and not yet reduced."""
        return {slot.parameter: (None, None) for slot in self._slots.values() if slot.passes_left == 0}

    def follow(self, param_groups: Sequence[dict[str, Any]]) -> None:
        """Notices from now on the gradients of those parameters that require them."""
        if self._is_of_another_job():
            self._begin_job()
        elif self._joins != job.joins():
            self.drop()
            self._begin_job()
        if not self.is_active:
            return
        trainable = [parameter for group in param_groups for parameter in group["params"] if parameter.requires_grad]
        if len(trainable) == len(self._slots) and all(parameter in self._slots for parameter in trainable):
            return
        self._is_changed = True
        self.names = add_names(param_groups, self.names)
        before, self._slots = self._slots, {}
        for parameter in trainable:
            self._slots[parameter] = before.pop(parameter, None) or self._new_slot(parameter)
        for slot in before.values():
            self._noticed.remove(slot)
            slot.hook.remove()  # its bucket still has it, until the ranks have agreed anew

    def synchronize(self, param_groups: Sequence[dict[str, Any]]) -> None:
        """Waits until every gradient is the reduced one, on all ranks.

        Errors  the reductions'; MismatchError when the ranks have different parameters. Nothing is in flight afterwards.
        """
        self.follow(param_groups)
        try:
            if self.is_active:
                self._reduce()
        except Exception:  # but not what a signal handler raises: then this may be called again
            self.begin_step()
            raise
        self.begin_step()

    def drop(self) -> None:
        """Waits for what is in flight, and begins a new step."""
        is_of_another_job = self._is_of_another_job()
        if self._layout is not None and (job.is_initialized() or not is_of_another_job):
            self._layout.drop()  # also what has ended with an earlier generation of an elastic job: it keeps its tensors until then
        if is_of_another_job:
            self._begin_job()
        self.begin_step()

    def _reduce(self) -> None:
        if self._layout is not None:
            if self._layout.was_changed():
                warnings.warn(
                    "a gradient was changed between backward() and step(), while it was being reduced; change gradients (clip "
                    "them, unscale them) between synchronize() and step(), and put step() into skip_synchronize()",
                    stacklevel=5,
                )
            if not self._layout.finish(self._is_changed or bool(self._came)):
                return
        self._agree()

    def _agree(self) -> None:
        """All ranks are here. Reduces what the layout so far did not have, and makes a new one for the steps to come."""
        if self._agreements == 0:
            self.name = f"DistributedOptimizer.{_next_number(self._reduction.process_set)}"
        self._agreements += 1
        name = f"{self.name}.{self._agreements}"
        forms = {slot.name: form_of(slot.parameter, slot.sparse_dims) for slot in reversed(self._slots.values())}
        agreement = agree(f"{name}.agreement", forms, self._came or (), self._reduction.process_set)
        slots = {slot.name: slot for slot in self._slots.values()}
        for each, form in agreement.forms.items():
            slots[each].sparse_dims = form.sparse_dims
        remaining = {each: slot for each, slot in slots.items() if not _is_reduced(slot)}
        if len(remaining) < len(slots):
            Layout(f"{name}.first", remaining, agreement, None, self._reduction).finish(False)
        self._layout = Layout(name, slots, agreement, self._groups, self._reduction)
        self._is_changed = False
        self._came = None if agreement.came else []
        if len(remaining) == len(slots):
            self._layout.finish(False)

    def _new_slot(self, parameter: torch.Tensor) -> Slot:
        this = weakref.ref(self)

        def hook(parameter: torch.Tensor) -> None:
            gradients = this()
            if gradients is not None:
                gradients._has_come(gradients._slots[parameter])

        slot = Slot(parameter, self.names[parameter], self.passes)
        slot.hook = parameter.register_post_accumulate_grad_hook(hook)  # type: ignore[no-untyped-call]
        self._noticed.append(slot)
        return slot

    def _has_come(self, slot: Slot) -> None:
        """One backward pass has accumulated into the parameter's gradient."""
        if slot.passes_left <= 0:
            raise AssertionError(
                f"the gradient of {slot.name} was computed more than backward_passes_per_step ({self.passes}) times before step(); "
                "raise backward_passes_per_step to accumulate"
            )
        taker = slot.taker
        if slot.parameter.grad.is_sparse and not self.sparse_as_dense and isinstance(taker, (Bucket, type(None))):
            self._turns_sparse(slot)
            taker = None
        if taker is not None:
            taker.hold(slot, slot.passes_left == 1)
        slot.passes_left -= 1
        if slot.passes_left == 0:
            self._is_complete(slot, taker)

    def _is_complete(self, slot: Slot, taker: Bucket | Alone | None) -> None:
        self._complete += 1
        if self._came is not None:
            self._came.append(slot.name)
        if taker is None:
            return
        taker.missing -= 1
        if taker.missing == 0 and taker is not self._layout.closing and self._has_layout_of_all_ranks():
            taker.submit()

    def _has_layout_of_all_ranks(self) -> bool:
        return self._generation == job.generation() and self._joins == job.joins()

    def _turns_sparse(self, slot: Slot) -> None:
        """A gradient that was planned as a dense one: it is not sent with its bucket, but after the ranks have agreed anew."""
        slot.sparse_dims = slot.parameter.grad.sparse_dim()
        self._is_changed = True


def _next_number(process_set: ProcessSet) -> int:
    """From 0 in each job, again when all ranks have joined, and again when the library gives a set the number of a removed one."""
    identifier = process_sets.identifier(process_set)
    since = (process_sets.epoch(identifier), job.joins())
    if identifier not in _numbers or _numbers[identifier][0] != since:
        _numbers[identifier] = (since, itertools.count())
    return next(_numbers[identifier][1])


def _is_reduced(slot: Slot) -> bool:
    """Whether the layout so far has it in the form in which it travels now."""
    return slot.taker is not None and (slot.sparse_dims == 0 or not isinstance(slot.taker, Bucket))


def _release_all(slots: list[Slot]) -> None:
    """Their parameters may be given to another optimizer, and the buckets' memory back, as soon as no gradient lies in it."""
    for slot in slots:
        slot.hook.remove()
        slot.taker, slot.view = None, None
