"""The gradients of one optimizer: reduces them in buckets during the backward pass, and waits for the reductions at its
end.

A round is one reduction of the gradients that are there. It ends with the pass that completes gradients, so that p.grad
has the reduced gradient when backward() returns. step() makes a round if no pass has made one, or for gradients that no
pass has computed. In a round, gradients that are not complete stay unchanged. In the final one, in step(), they count
as complete.

In the first round nothing is sent before its end: there the ranks announce to each other which gradients they have, and
in which order these were completed. They do so again after a round in which a rank has seen a parameter that is new,
frozen or unfrozen. One of the words that are sent with every round's gradients announces this. They also do so in the
first round after all of them have joined. Therefore all ranks always have the same buckets.

The words also carry the phase, which is the number of steps and of evaluations of closures. Ranks in different phases
have made unequal numbers of passes. Then, and if a rank has another fault, all ranks exchange texts, and raise the same
error.

The ranks identify an optimizer by its number among those of its process set, in the order of their first agreements.
These block, so the order is the same on all ranks. The order in which optimizers are made would not be the same: a rank
that joins an elastic job later has made fewer of them.

Threads  the threads of the backward pass, one at a time, and the thread that steps.
"""

from __future__ import annotations

import contextlib
import itertools
import weakref
from collections.abc import Iterator, Sequence
from typing import Any, Callable

import torch

from .. import job, process_sets
from ..bucket_settings import bucket_settings
from ..exceptions import Error, MismatchError
from ..process_sets import ProcessSet
from . import passes
from .agreement import Announcement, agree, explain, form_of
from .autotune import Autotuner, autotuner
from .buckets import Alone, Bucket, GradientReduction
from .layout import Layout, Words
from .parameter_names import add_names
from .slot import Slot

# Numbers of optimizers, by process set: the epoch that they belong to, and the next ones.
_numbers: dict[int, tuple[object, Iterator[int]]] = {}


class Gradients:
    """The gradients of one optimizer. `is_active` is whether there is another rank to reduce with; without one, nothing
    is recorded or reduced.

    name             the same on all ranks; empty before their first agreement.
    bucket_bytes     the size of its buckets, unless it is being tuned; the same on all ranks. It may be set before their
                     first agreement.
    names            the names of all parameters. sparse_as_dense: as for DistributedOptimizer.
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
        self._param_groups: Callable[[], Sequence[dict[str, Any]]] = list
        self._slots: dict[torch.Tensor, Slot] = {}
        self._noticed: list[Slot] = []  # the slots for _release_all(), which runs when this object is deleted
        weakref.finalize(self, _release_all, self._noticed)
        self._begin_job()

    def _begin_job(self) -> None:
        """Begins a job, also after another init(): other ranks, other memory, and nothing in flight any more. It also
        runs when all ranks have joined: a rank that joined early does not know on what the others have agreed since.
        """
        process_set = self._reduction.process_set
        is_alone = job.size() == 1
        self._generation, self._joins = job.generation(), job.joins()
        self.is_active = not is_alone and bool(process_set.included()) and process_set.size() > 1
        self._layout: Layout | None = None
        self._autotuner: Autotuner | None = None
        if self.is_active:
            self.bucket_bytes = bucket_settings().bucket_bytes
            self._autotuner = autotuner() if process_sets.identifier(process_set) == 0 else None
        self.name = ""
        self._number = 0
        self._agreements = 0
        self._is_changed = False
        self._completion_order: list[str] | None = []  # names of gradients, until the ranks have agreed on an order
        self._steps = self._evaluations = 0  # the numbers so far; evaluations are those of closures in this step
        self._phase = 0
        for slot in self._slots.values():
            slot.taker, slot.view = None, None
        self.begin_anew()

    def begin_anew(self) -> None:
        """Begins again, with no gradient accumulated in this step."""
        self._complete = 0  # the number of completed gradients that have not been reduced
        self._rounds = 0
        self._is_left_over = False  # True if after the last round any rank has a gradient of too few passes
        self._ended_passes = 0
        self._pass = -1  # the pass in which a gradient was last accumulated
        self._passes: set[int] = set()  # the passes in which gradients were accumulated, and that have not ended
        self._is_handed_on = False
        self._has_begun = False
        self._fault = ""
        for slot in self._slots.values():
            slot.begin(self.passes)
        if self._layout is not None:
            self._layout.begin_step()

    def begin_step(self) -> None:
        """Notes that the optimizer has taken a step."""
        if self._autotuner is not None and self._layout is not None:
            self._autotuner.end_step(self, self._layout.bucket_bytes)
        self._steps += 1
        self._evaluations = 0
        self._phase += 1
        if self._has_begun:
            self.begin_anew()

    def begin_evaluation(self) -> None:
        """Notes that a closure is called, whose gradients are to be reduced, whatever was reduced in this step before."""
        self._follow_job()
        self._evaluations += 1
        self._phase += 1
        self._rounds = 0

    def _is_of_another_job(self) -> bool:
        """True if the job has changed. A forked child, which is in no job, continues alone where its parent was."""
        return self._generation != job.generation() and (self.is_active or job.is_initialized())

    def clear(self) -> None:
        """Checks that gradients may be cleared. Errors  AssertionError while they are being reduced, as in a hook of
        the backward pass.
        """
        if self._complete > 0 and passes.is_in_a_pass(self):
            raise AssertionError(
                "zero_grad() during backward(): gradients are still being reduced; call it when backward() has returned, or after step()"
            )
        self._settle(is_cleared=True)
        if self._has_begun:
            self.begin_anew()

    def parameters(self) -> set[torch.Tensor]:
        """The parameters whose gradients are reduced."""
        return set(self._slots)

    def in_flight(self) -> dict[torch.Tensor, tuple[None, None]]:
        """The parameters whose gradients are complete and not yet reduced."""
        return {slot.parameter: (None, None) for slot in self._slots.values() if slot.passes_left == 0 and not slot.is_reduced}

    def follow(self, param_groups: Callable[[], Sequence[dict[str, Any]]] | None = None) -> list[Slot]:
        """Registers hooks for the gradients of those parameters that require them. Returns the slots of new parameters.

        param_groups  a function that returns the optimizer's groups. It is passed once.
        """
        self._param_groups = param_groups or self._param_groups
        self._follow_job()
        if not self.is_active:
            return []
        groups = self._param_groups()
        trainable = [parameter for group in groups for parameter in group["params"] if parameter.requires_grad]
        if len(trainable) == len(self._slots) and all(parameter in self._slots for parameter in trainable):
            return []
        self._is_changed = True
        self.names = add_names(groups, self.names)
        before, self._slots = self._slots, {}
        new = []
        for parameter in trainable:
            slot = before.pop(parameter, None)
            if slot is None:
                slot = self._new_slot(parameter)
                new.append(slot)
            self._slots[parameter] = slot
        for slot in before.values():
            slot.begin(self.passes)
            self._noticed.remove(slot)
            slot.hook.remove()  # its bucket keeps the slot until the ranks have agreed again
        return new

    def _follow_job(self) -> None:
        if self._is_of_another_job():
            self._begin_job()
        elif self._joins != job.joins():
            self.drop()
            self._begin_job()

    def synchronize(self) -> None:
        """Makes the final round of a step, if the step had none, or if there are gradients that no round has reduced.

        Errors  those of the reductions; MismatchError if the ranks have different parameters, or have made
                unequal numbers of passes. Nothing is in flight afterwards.
        """
        self._settle()
        self.follow()
        if self.is_active and self._is_round_due():
            self._begin_round(is_final=True)
            self.end_round()

    def _is_round_due(self) -> bool:
        if self._rounds == 0 or self._complete > 0 or self._is_left_over:
            return True
        return any(slot.is_left_out() for slot in self._slots.values())

    def drop(self) -> None:
        """Waits for the reductions in flight, and begins again."""
        is_of_another_job = self._is_of_another_job()
        if self._layout is not None and (job.is_initialized() or not is_of_another_job):
            if not is_of_another_job and self._joins == job.joins():
                with contextlib.suppress(Error):
                    self._settle(is_cleared=True)
            self._layout.drop()  # also if it ended with an earlier generation of an elastic job: it keeps its tensors until then
        if is_of_another_job:
            self._begin_job()
        self.begin_anew()

    # The functions of passes.Owner.

    def serving_order(self) -> tuple[Any, ...]:
        """The optimizer's number; before it has one, the names of its parameters."""
        names = [] if self.name else sorted(self.names.values())
        return (process_sets.identifier(self._reduction.process_set), self.name == "", self._number, names)

    def note_handed_on(self) -> None:
        self._is_handed_on = True

    def begin_round(self) -> bool:
        """Begins a round at the end of a pass if the step has had enough passes. The decision does not depend on the
        completed gradients, which may differ among ranks, but on the number of passes, which does not.

        Errors  those of reductions that do not start.
        """
        if not self._passes:  # a hook has called step() since the last gradient was accumulated
            return False
        self._pass = -1
        self._passes.clear()
        self._ended_passes += 1
        if self._ended_passes < self.passes:
            return False
        for slot in self.follow():
            if slot.parameter.grad is not None:  # the passes of this step have computed it before it had a hook
                slot.passes_left = 0
        self._begin_round(is_final=False)
        return True

    def _begin_round(self, is_final: bool, fault: str = "") -> None:
        self._is_final = is_final
        self._has_begun = True
        if self._layout is None or self._layout.is_begun:  # a signal handler has interrupted it
            return
        changed = self._layout.changed_gradient()
        if changed is not None and not fault:
            fault = (
                f"the gradient of {changed} was changed or removed while it was being reduced; change and clear gradients when backward() "
                "has returned, not in hooks of it"
            )
        self._fault = fault
        try:
            is_changed = self._is_changed or bool(self._completion_order) or self._layout.bucket_bytes != self._wanted_bytes()
            self._layout.begin_round(is_final, Words(is_changed, bool(fault), self._leaves_over(), self._phase))
        except Exception:
            self.begin_anew()
            raise

    def _wanted_bytes(self) -> int:
        """The size of buckets that this rank announces. All ranks have the same one, unless rank 0 searches."""
        return self.bucket_bytes if self._autotuner is None else self._autotuner.bucket_bytes

    def _leaves_over(self) -> bool:
        """True if this rank has a gradient that has been accumulated in some passes of a step, but not in all, and that
        is not sent unchanged.
        """
        if self._is_final or self.passes == 1:
            return False
        return any(0 < slot.passes_left < self.passes for slot in self._slots.values())

    def end_round(self) -> None:
        """Waits for the round. Errors  as synchronize()."""
        try:
            if self._layout is None:
                self._agree()
            elif self._end_round_of(self._layout).is_changed:
                self._agree()
        except Exception:  # but not for an exception of a signal handler, after which this may be called again
            self.begin_anew()
            raise
        self._complete = 0
        self._rounds += 1

    def _explain_fault(self) -> str:
        """Exchanges the faults of all ranks, which all call it. Returns a text with all of them, the same on all ranks."""
        position = f"step {self._steps + 1}" + (f", evaluation {self._evaluations} of its closure" if self._evaluations else "")
        return explain(f"{self.name}.{self._agreements}.fault", position, self._fault, self._reduction.process_set)

    def _agree(self) -> None:
        """Agrees on the gradients with all ranks, which all call it. Reduces the gradients that the previous layout did
        not have, and makes a new layout for the next rounds.
        """
        if self._agreements == 0:
            self._number = _next_number(self._reduction.process_set)
            self.name = f"DistributedOptimizer.{self._number}"
        self._agreements += 1
        name = f"{self.name}.{self._agreements}"
        forms = {slot.name: form_of(slot.parameter, slot.sparse_dims) for slot in reversed(self._slots.values())}
        own = Announcement(forms, self._completion_order or (), self._wanted_bytes())
        agreement = agree(f"{name}.agreement", own, self._reduction.process_set)
        slots = {slot.name: slot for slot in self._slots.values()}
        for each, form in agreement.forms.items():
            slots[each].sparse_dims = form.sparse_dims
        remaining = {each: slot for each, slot in slots.items() if not _has_layout(slot)}
        if len(remaining) < len(slots):
            self._reduce(Layout(f"{name}.first", remaining, agreement, None, self._reduction))
        self._layout = Layout(name, slots, agreement, self._groups, self._reduction)
        if self._autotuner is not None:
            self._autotuner.add_optimizer(self, self._layout.bytes_in_buckets, self._groups is not None)
        self._is_changed = False
        self._completion_order = None if agreement.completed else []
        if len(remaining) == len(slots):
            self._reduce(self._layout)

    def _reduce(self, layout: Layout) -> None:
        """Makes a round of a new layout, which has taken none of its gradients."""
        for slot in layout.slots.values():
            if slot.passes_left == 0 and not slot.is_reduced:
                slot.taker.hold(slot, is_complete=True)
        layout.begin_round(self._is_final, Words(False, False, self._leaves_over(), self._phase))
        self._end_round_of(layout)

    def _end_round_of(self, layout: Layout) -> Words:
        words = layout.end_round()
        if words.has_fault:
            raise MismatchError(self._explain_fault())
        self._is_left_over = words.is_left_over
        return words

    def _new_slot(self, parameter: torch.Tensor) -> Slot:
        this = weakref.ref(self)

        def hook(parameter: torch.Tensor) -> None:
            gradients = this()
            if gradients is not None:
                gradients._on_accumulated(gradients._slots[parameter])

        slot = Slot(parameter, self.names[parameter], self.passes)
        slot.hook = parameter.register_post_accumulate_grad_hook(hook)  # type: ignore[no-untyped-call]
        self._noticed.append(slot)
        return slot

    def _on_accumulated(self, slot: Slot) -> None:
        """Records that one backward pass has accumulated into the parameter's gradient."""
        number = passes.current_pass()
        if number != self._pass:
            self._enter_pass(number)
        if not self.is_active:
            return
        if slot.passes_left < slot.passes and slot.was_cleared():
            self._begin_again(slot)
        if slot.passes_left <= 0:
            raise AssertionError(
                f"the gradient of {slot.name} was computed more than backward_passes_per_step ({self.passes}) times before step(); "
                "raise backward_passes_per_step to accumulate, or clear the gradient with zero_grad()"
            )
        slot.last_pass = number
        taker = slot.taker
        if slot.parameter.grad.is_sparse and not self.sparse_as_dense and isinstance(taker, (Bucket, type(None))):
            self._note_sparse(slot)
            taker = None
        if taker is not None:
            taker.hold(slot, slot.passes_left == 1)
        slot.passes_left -= 1
        if slot.passes_left == 0:
            self._on_completed(slot, taker)
        else:
            slot.leave()

    def _enter_pass(self, number: int) -> None:
        """Enters the pass of a first gradient, or enters a pass again after another one that ran inside of it."""
        self._follow_job()
        if not self.is_active:
            return
        if not (self._is_handed_on or passes.is_in_a_pass(self)):
            self._settle()
            if self._ended_passes > 0 or self._rounds > 0:
                for slot in self._slots.values():
                    if slot.passes_left < slot.passes and slot.parameter.grad is None:
                        self._begin_again(slot)
        self._is_handed_on = False
        self._pass = number
        self._passes.add(number)
        self._has_begun = True
        passes.enter(self)

    def _begin_again(self, slot: Slot) -> None:
        """Begins a gradient again that was cleared, whether it was reduced or not."""
        slot.begin(self.passes)
        if slot.taker is not None:
            slot.taker.count()

    def _settle(self, is_cleared: bool = False) -> None:
        """Discards the gradients of a pass that raised. If some of them have been sent, other ranks wait for the rest.
        They receive the message that the pass has failed here.

        is_cleared  also discards gradients of a pass that was handed on to an unknown pass around it.
        """
        if self._layout is not None and self._layout.is_begun:  # a signal handler has interrupted the wait
            self.end_round()
        if not self._passes or passes.is_in_a_pass(self) or (self._is_handed_on and not is_cleared):
            return
        if self._layout is not None and self._layout.is_in_flight:
            try:
                self._begin_round(is_final=False, fault="its backward pass raised an error, so that gradients of this step are missing")
                if self._layout.end_round().has_fault:
                    self._explain_fault()
            finally:
                self.begin_anew()
            return
        for slot in self._slots.values():
            if slot.last_pass in self._passes and not slot.is_reduced:
                slot.passes_left += 1
                slot.is_here = False
        self._complete = sum(slot.passes_left == 0 and not slot.is_reduced for slot in self._slots.values())
        self._passes.clear()
        if self._layout is not None:
            self._layout.count()

    def _on_completed(self, slot: Slot, taker: Bucket | Alone | None) -> None:
        self._complete += 1
        if self._completion_order is not None:
            self._completion_order.append(slot.name)
        if taker is None:
            return
        taker.missing -= 1
        if taker.missing == 0 and taker is not self._layout.closing and self._has_layout_of_all_ranks():
            taker.submit(is_final=False)

    def _has_layout_of_all_ranks(self) -> bool:
        return self._generation == job.generation() and self._joins == job.joins()

    def _note_sparse(self, slot: Slot) -> None:
        """Notes that a gradient is sparse that was planned as a dense one. It is not sent with its bucket, but after
        the ranks have agreed again.
        """
        slot.sparse_dims = slot.parameter.grad.sparse_dim()
        self._is_changed = True


def _next_number(process_set: ProcessSet) -> int:
    """The next number of an optimizer. Numbers begin at 0 in each job, when all ranks have joined, and when the library
    gives a set the number of a removed one.
    """
    identifier = process_sets.identifier(process_set)
    since = (process_sets.epoch(identifier), job.joins())
    if identifier not in _numbers or _numbers[identifier][0] != since:
        _numbers[identifier] = (since, itertools.count())
    return next(_numbers[identifier][1])


def _has_layout(slot: Slot) -> bool:
    """True if the present layout has the gradient in the form in which it is sent now."""
    return slot.taker is not None and (slot.sparse_dims == 0 or not isinstance(slot.taker, Bucket))


def _release_all(slots: list[Slot]) -> None:
    """Removes the hooks, so that the parameters may be given to another optimizer, and the buckets' memory is freed
    when no gradient lies in it.
    """
    for slot in slots:
        slot.hook.remove()
        slot.taker, slot.view = None, None
