"""Gradients during one reduction: several in a bucket, or one alone.

A round of each has three parts. hold() takes a completed gradient. submit() starts the reduction with the gradients
that are there. finish() waits for it and gives every parameter its result. submit() also announces for each gradient
whether this rank has it. A gradient that no rank has stays unchanged. One that only other ranks have counts as zeros
here, or as the part that has been accumulated. A step has a round for each backward pass that completes gradients. A
gradient is reduced once in a step: in later rounds it counts as zeros, and its parameter keeps the result.

Threads  the threads of the backward pass, one at a time, and the thread that calls finish().
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Callable, NamedTuple

import torch

from .. import handles, reduce_ops
from ..calls import Reduction
from ..compression import Compressor
from ..exceptions import Error, MismatchError
from ..handles import Call
from ..process_sets import ProcessSet
from . import timeline_rows
from .operations import calls
from .slot import Slot
from .sparse import sparse_allreduce_async
from .symmetric import empty_symmetric
from .tensors import DTYPES

ALIGNMENT_BYTES = 64  # of each gradient in a bucket: a cache line


class GradientReduction(NamedTuple):
    """The reduction of all gradients of an optimizer."""

    op: int
    prescale_factor: float
    postscale_factor: float
    compression: type[Compressor]
    process_set: ProcessSet

    def start(self, tensor: torch.Tensor, name: str) -> int:
        """Reduces `tensor`, which is contiguous, in place; returns a handle."""
        return handles.start(self._call(tensor, name))

    def start_again(self, call: Call | None, tensor: torch.Tensor, name: str) -> tuple[Call | None, int]:
        """Reduces as start() does, but describes the operation only once, because that takes longer than starting it.
        `call` is the Call that the last call has returned, or None.
        """
        call = call or self._call(tensor, name)
        handle = handles.start(call)
        # In the first call, the description has a copy with the values of this step.
        is_copied = call.tensors[0].data_ptr() != tensor.data_ptr()
        return None if is_copied else call, handle

    def _call(self, tensor: torch.Tensor, name: str) -> Call:
        reduction = Reduction(self.op, self.prescale_factor, self.postscale_factor, self.process_set)
        return calls.allreduce(tensor, name, reduction, in_place=True)

    def word(self, is_true: bool) -> float:
        """The value of a word: an element for True or False. is_any() reads it after the reduction over all ranks."""
        return float(is_true == (self.op not in (reduce_ops.Min, reduce_ops.Product)))

    def is_any(self, reduced: torch.Tensor | float) -> bool:
        """True if the word was True on any rank."""
        return bool(reduced == 0) == (self.op in (reduce_ops.Min, reduce_ops.Product))


class Bucket:
    """Gradients of one dtype and device in one piece of memory, symmetric if there is such memory, which is reduced in
    place.

    p.grad becomes a tensor in that memory. Autograd does not regard it as a view, and it has its own version counter.
    It stays valid if the program keeps it: the bucket leaves the memory to the gradients of the last round if other
    references to it exist than those of the bucket and the parameters' p.grad, and if gradients in it have been reduced
    in this step. If PyTorch does not count references, the bucket leaves the memory in each round with a gradient that
    was accumulated elsewhere.

    In two cases p.grad remains the same tensor and is overwritten with the result. One is a p.grad that is a part of a
    larger piece of memory, which belongs to the program. The other is a `dtype` that differs from the gradients', which
    is compression.

    After the gradients, the memory has words: for each gradient whether it is here, and `extra` words of the owner.

    On a GPU the gradients are moved to the memory together, before the reduction, because launching the copies takes
    longer than the copies. The words are then in `host_words`.
    """

    def __init__(
        self, name: str, slots: Sequence[Slot], strides: Sequence[Sequence[int] | None],
        memory: tuple[torch.dtype, torch.device], reduction: GradientReduction, extra: int = 0,
        host_words: memoryview[float] | None = None,
    ) -> None:  # fmt: skip
        self.name = name
        self.slots = slots
        self._strides = strides
        self._dtype, self._device = memory
        self._reduction = reduction
        self._extra = extra
        self._host_words = host_words
        self._handle: int | None = None
        self._call: Call | None = None  # the description of the reduction of the memory
        self._flat: torch.Tensor | None = None
        self._words: Any = None  # a tensor after the gradients, or the words in host_words
        self._own_references = 0  # references to the memory while no gradient lies in it
        # Values that are sent, and restored if no rank has completed that gradient.
        self._lent: list[tuple[Slot, torch.Tensor]] = []
        for slot in slots:
            slot.taker, slot.view = self, None
        self.begin_step()

    def begin_step(self) -> None:
        """Begins a step, in which no gradient has been completed yet."""
        self.count()
        self._begin_round()

    def _begin_round(self) -> None:
        self._lent.clear()
        self._has_room = False  # True if the memory may be written in this round, where no gradient lies
        self._is_recorded = timeline_rows.are_recorded()  # read once, so that hold() need not ask for each gradient

    def count(self) -> None:
        """Counts the missing gradients. is_reduced: whether all gradients were reduced in this step."""
        self.missing = sum(slot.passes_left > 0 for slot in self.slots)
        self.is_reduced = all(slot.is_reduced for slot in self.slots)

    @property
    def is_submitted(self) -> bool:
        return self._handle in handles.in_flight()

    def hold(self, slot: Slot, is_complete: bool) -> None:
        """Takes the accumulated gradient. One that is not complete is taken only if it can be accumulated further in
        the bucket's memory.
        """
        slot.is_here = is_complete
        if self._is_recorded and is_complete:
            slot.completed_ns = time.monotonic_ns()
        if self._host_words is None:
            self._take(slot, is_complete)
        if is_complete:
            slot.see(slot.parameter.grad)

    def _take(self, slot: Slot, is_complete: bool) -> None:
        """Copies the gradient into the memory, unless it already lies there."""
        gradient = slot.parameter.grad
        if _is_in_place(gradient, slot):
            return
        is_bound = self._can_bind(gradient)
        if not (is_bound or is_complete):
            return
        if not self._has_room:
            self._make_room()
        slot.view.copy_(_values(gradient))
        if is_bound:
            _bind(slot)

    def _can_bind(self, gradient: torch.Tensor) -> bool:
        """True if p.grad may become a tensor in the bucket's memory."""
        return gradient.dtype == self._dtype and not gradient.requires_grad and not gradient.is_sparse and not _is_part(gradient)

    def _move(self) -> None:
        """Copies all gradients that are here and lie elsewhere into the memory, together."""
        moved = [
            (slot, gradient) for slot in self.slots
            if slot.is_here and not _is_in_place(gradient := slot.parameter.grad, slot) and gradient is not None
        ]  # fmt: skip
        if not moved:
            return
        torch._foreach_copy_([slot.view for slot, _ in moved], [_values(gradient) for _, gradient in moved])
        for slot, gradient in moved:
            if self._can_bind(gradient):
                _bind(slot)

    def submit(self, is_final: bool, extra: Sequence[bool] = ()) -> None:
        """Starts the reduction.

        is_final  a gradient that is not complete counts as complete. Otherwise it is sent in case another rank has
                  completed it.
        extra     the owner's words.
        """
        if not self._has_room:
            self._make_room()
        is_here = self._reduction.word(True)
        if self._host_words is None:
            self._words.fill_(is_here)
        for index, slot in enumerate(self.slots):
            if self._host_words is not None:
                self._words[index] = is_here
            if not slot.is_here:
                self._take_incomplete(slot, index, is_final)
        for index, word in enumerate(extra, len(self.slots)):
            if not word:
                self._words[index] = self._reduction.word(False)
        if self._host_words is not None:
            self._move()
        if timeline_rows.are_recorded():
            self._show_gradients()
        self._call, self._handle = self._reduction.start_again(self._call, self._flat, self.name)

    def leave_out(self) -> None:
        """Skips this round: all gradients were reduced in this step, so nothing is sent."""
        if self._host_words is not None:
            for index in range(len(self.slots)):
                self._words[index] = self._reduction.word(False)

    def _show_gradients(self) -> None:
        """Gives each gradient a row in the timeline, with the events of the bucket."""
        timeline_rows.show(
            self.name, [slot.name for slot in self.slots], [slot.parameter.shape for slot in self.slots],
            [slot.completed_ns if slot.is_here else 0 for slot in self.slots], self._dtype, self._reduction.process_set,
        )  # fmt: skip

    def finish(self) -> None:
        """Waits for the reduction; on a GPU, only after the words. Gives the parameters their results.

        Errors  those of the reduction; MismatchError for a gradient that was reduced here before, and on
                another rank only now. The round has ended also after an error.
        """
        handles.synchronize(self._handle)
        failure = None
        for index, slot in enumerate(self.slots):
            if slot.is_reduced:
                if self._reduction.is_any(self._words[index]):
                    failure = failure or reduced_twice(slot)
                continue
            is_anywhere = slot.is_here or self._reduction.is_any(self._words[index])
            if is_anywhere and not _is_in_place(slot.parameter.grad, slot):
                _give(slot)
            slot.end_round(is_anywhere)
        for slot, values in self._lent:
            if not slot.is_reduced:
                slot.view.copy_(values)
        self.count()
        self._begin_round()
        if failure is not None:
            raise failure

    def is_any(self, index: int) -> bool:
        """True if the owner's word `index` was True on any rank. To be called after finish()."""
        return self._reduction.is_any(self._words[len(self.slots) + index])

    def _take_incomplete(self, slot: Slot, index: int, is_final: bool) -> None:
        """Takes the incomplete part of a gradient: none, one of earlier steps, or one of too few passes."""
        gradient = slot.parameter.grad
        is_nothing = gradient is None or slot.is_reduced or (gradient.is_sparse and slot.sparse_dims)
        if is_final and not is_nothing:
            self.hold(slot, is_complete=True)
            return
        self._words[index] = self._reduction.word(False)
        if is_nothing:
            slot.view.zero_()
        elif _is_in_place(gradient, slot):
            self._lent.append((slot, slot.view.clone()))
        else:
            slot.view.copy_(_values(gradient))

    def _make_room(self) -> None:
        """Prepares the memory before the first gradient of a round that lies elsewhere is written to it."""
        if self._flat is None or self._is_kept():
            self._allocate()
        self._has_room = True

    def _is_kept(self) -> bool:
        """True if the program has a reference to a gradient of the last round, or to a tensor that shares its memory. Also
        true if the p.grad of a parameter is a gradient that was reduced in this step.
        """
        if any(slot.is_reduced and slot.address != 0 and _is_bound(slot) for slot in self.slots):
            return True
        count = _references(self._flat)
        if count == self._own_references > 0:
            return False
        filled = [slot for slot in self.slots if slot.address != 0]
        in_place = sum(_is_in_place(slot.parameter.grad, slot) for slot in filled)
        return count > self._own_references + in_place if count > 0 else in_place < len(filled)

    def _allocate(self) -> None:
        """Allocates memory, and moves the gradients there that lie in the previous memory, which may be that of an
        earlier bucket.
        """
        unit = ALIGNMENT_BYTES // torch.empty(0, dtype=self._dtype, device="cpu").element_size()
        places = [0]
        for slot in self.slots:
            places.append(places[-1] + (slot.parameter.numel() + unit - 1) // unit * unit)
        words = len(self.slots) + self._extra if self._host_words is None else 0
        self._flat, self._call = _memory(places[-1] + words, self._dtype, self._device), None
        self._words = self._flat[places[-1] :] if self._host_words is None else self._host_words
        bound = [slot for slot in self.slots if _is_bound(slot) and not slot.is_reduced]
        for slot, strides, place in zip(self.slots, self._strides, places):
            slot.view = _view(self._flat, place, slot.parameter.shape, strides)
            slot.strides, slot.address = slot.view.stride(), slot.view.data_ptr()
        self._own_references = _references(self._flat)
        for slot in bound:
            slot.view.copy_(slot.parameter.grad.detach())
            _bind(slot)


def _values(gradient: torch.Tensor) -> torch.Tensor:
    gradient = gradient.detach() if gradient.requires_grad else gradient
    return gradient.to_dense() if gradient.is_sparse else gradient


def _bind(slot: Slot) -> None:
    """Makes p.grad a tensor in the bucket's memory with the same values. The slot's `seen` and `left` refer to it if
    they referred to the previous one.
    """
    is_as_seen = slot.seen is not None and slot.is_as_seen()
    is_left = slot.left() is slot.parameter.grad
    slot.parameter.grad = slot.view.data  # not a view, for which detach_() fails; it has its own version counter
    if is_as_seen:
        slot.see(slot.parameter.grad)
    if is_left:
        slot.leave()


def _give(slot: Slot) -> None:
    """Copies the result to a gradient that does not lie in the bucket's memory."""
    parameter, gradient = slot.parameter, slot.parameter.grad
    if gradient is None or gradient.requires_grad:  # a result is not a part of the graph that create_graph=True has made
        parameter.grad = slot.view.detach().to(parameter.dtype, copy=True)
    elif gradient.is_sparse:
        parameter.grad = slot.view.to(parameter.dtype).to_sparse(gradient.sparse_dim())
    else:
        gradient.copy_(slot.view)


def _is_bound(slot: Slot) -> bool:
    """True if p.grad begins at the slot's place, or at its place in the previous memory."""
    gradient = slot.parameter.grad
    return gradient is not None and gradient.layout is torch.strided and gradient.data_ptr() == slot.address


def _is_in_place(gradient: torch.Tensor | None, slot: Slot) -> bool:
    """True if p.grad lies at the slot's place in its bucket's memory. Programs may give the same tensor other memory:
    p.grad.data = ...
    """
    if gradient is None or slot.view is None or gradient.is_sparse or gradient.data_ptr() != slot.address:
        return False
    return gradient.stride() == slot.strides and gradient.dtype == slot.view.dtype


def _is_part(tensor: torch.Tensor) -> bool:
    return tensor.untyped_storage().nbytes() > tensor.nbytes


def _references(tensor: torch.Tensor) -> int:
    """The number of references to the tensor's memory: one of each tensor, and one of this call. 0 if PyTorch does not
    report it.
    """
    count = getattr(torch._C, "_storage_Use_Count", lambda storage: 0)
    return int(count(tensor.untyped_storage()._cdata))


def _view(flat: torch.Tensor, place: int, shape: torch.Size, strides: Sequence[int] | None) -> torch.Tensor:
    """A view of the memory at `place`. An empty one refers to no memory."""
    part = flat[place : place + shape.numel()] if shape.numel() > 0 else flat.new_empty(0)
    return part.view(shape) if strides is None else part.as_strided(shape, strides)


def _memory(count: int, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """A tensor of `count` zeros, symmetric if possible."""
    if device.type == "cpu" and dtype in DTYPES:
        return empty_symmetric(count, dtype=dtype).zero_()
    return torch.zeros(count, dtype=dtype, device=device)


class Alone:
    """A gradient that is reduced by itself: a sparse one, a large one in its own memory, or one for a compressor that
    may depend on its shape.

    It does not announce whether any rank has the gradient: the caller of finish() must know that.
    """

    def __init__(self, name: str, slot: Slot, reduction: GradientReduction) -> None:
        self.name = name
        self.slot = slot
        self._reduction = reduction
        self._wait: Callable[[], torch.Tensor] | None = None
        slot.taker, slot.view = self, None
        self.begin_step()

    @property
    def slots(self) -> Sequence[Slot]:
        return (self.slot,)

    def begin_step(self) -> None:
        """Begins a step, in which the gradient has not been completed yet."""
        self.count()

    def count(self) -> None:
        """Counts the gradient as Bucket.count() does."""
        self.missing = int(self.slot.passes_left > 0)
        self.is_reduced = self.slot.is_reduced

    @property
    def is_submitted(self) -> bool:
        return self._wait is not None

    def hold(self, slot: Slot, is_complete: bool) -> None:
        """Takes the gradient in its own memory."""
        slot.is_here = is_complete
        if is_complete:
            slot.see(slot.parameter.grad)

    def submit(self, is_final: bool) -> None:
        """Starts the reduction of the accumulated part. is_final: as for Bucket.submit()."""
        slot = self.slot
        gradient = None if slot.is_reduced else slot.parameter.grad
        if gradient is not None and is_final and not slot.is_here:
            self.hold(slot, is_complete=True)
        self._wait = self._start_sparse(gradient) if slot.sparse_dims else self._start_dense(gradient)

    def leave_out(self) -> None:
        """Skips this round: the gradient was reduced in this step, so nothing is sent."""

    def finish(self, is_anywhere: bool) -> None:
        """Waits for the reduction. is_anywhere: whether any rank has completed the gradient. Errors  as Bucket.finish()."""
        slot = self.slot
        try:
            reduced = self._wait()
        except Error:
            self._wait = None
            raise
        self._wait = None
        if slot.is_reduced:
            if is_anywhere:
                raise reduced_twice(slot)
            return
        gradient = slot.parameter.grad
        if is_anywhere and (gradient is None or gradient.requires_grad or reduced.is_sparse):
            slot.parameter.grad = reduced
        elif is_anywhere and reduced.data_ptr() != gradient.data_ptr():
            gradient.copy_(reduced)
        slot.end_round(is_anywhere)
        self.count()

    def _start_sparse(self, gradient: torch.Tensor | None) -> Callable[[], torch.Tensor]:
        parameter, dims = self.slot.parameter, self.slot.sparse_dims
        if gradient is None:
            indices = torch.empty(dims, 0, dtype=torch.int64, device=parameter.device)
            values = torch.empty(0, *parameter.shape[dims:], dtype=parameter.dtype, device=parameter.device)
            gradient = torch.sparse_coo_tensor(indices, values, parameter.shape, check_invariants=False)
        elif not gradient.is_sparse:
            gradient = gradient.detach().to_sparse(dims)
        return sparse_allreduce_async(gradient.detach(), self.name, self._reduction.op, self._reduction.process_set)

    def _start_dense(self, gradient: torch.Tensor | None) -> Callable[[], torch.Tensor]:
        if gradient is None:
            gradient = torch.zeros_like(self.slot.parameter, requires_grad=False)
        elif not self.slot.is_here:
            gradient = gradient.detach().clone()  # sent only in case another rank has completed it
        compressed, context = self._reduction.compression.compress(gradient.detach())
        if timeline_rows.are_recorded():
            shape, dtype = compressed.shape, compressed.dtype
            timeline_rows.show(self.name, [self.slot.name], [shape], [0], dtype, self._reduction.process_set)
        handle = self._reduction.start(compressed.contiguous().resolve_neg(), self.name)
        return lambda: self._reduction.compression.decompress(handles.synchronize(handle), context)


def reduced_twice(slot: Slot) -> MismatchError:
    return MismatchError(
        f"DistributedOptimizer: another rank has computed the gradient of {slot.name} again in the same step, which this rank has not; all "
        "ranks of the process set must clear gradients and run backward() alike"
    )
