"""The operations of torch.distributed on one group, over the library's collectives.

All methods have the names and arguments by which torch.distributed calls a group or a backend. Tensors may be of any
dtype and need not be contiguous; ranks may give lists of unequal tensors where torch.distributed allows it. A method
returns None instead of a Work if the call is synchronous and over. Without options, `opts`, a call is asynchronous, adds,
and has the root 0.

| torch.distributed                    | library                                                                     |
| ------------------------------------ | --------------------------------------------------------------------------- |
| allreduce, reduce                    | allreduce; a bitwise reduction: allgather, and each rank combines           |
| broadcast                            | broadcast                                                                   |
| allgather                            | allgather                                                                   |
| reduce_scatter                       | reducescatter; of unequal tensors: allreduce, and each rank takes its part  |
| gather, scatter, all_to_all          | alltoall with splits, so that no byte moves in vain                         |
| barrier                              | barrier                                                                     |
| send, recv                           | messages between two ranks, which the others do not take part in            |
"""

from __future__ import annotations

import math
import os
import sys
import threading
import types
from collections.abc import Callable, Sequence
from ctypes import byref, c_int64
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from ...torch_version import has_new_backends
from ..tensors import DTYPES
from ... import job, victims
from ..._library import library
from ...exceptions import Error, InvalidArgumentError
from . import reductions
from .messages import ANY_RANK, Message, MessageWork
from .submission import Barrier, Description, Part, Reusable, dense, is_dense
from .work import Flights, Label, Work

Tensor = torch.Tensor

#: True if PyTorch takes None for a call that is over. Before, it waits for a Work in each case.
_TAKES_NONE = has_new_backends(torch)

_Pair = tuple[Tensor, Tensor]


class Operations:
    """The operations of a group whose members are the ranks of one process set of the library.

    process_set  the library's number of the set.
    ranks        the members as ranks of the job, in the order of the group.
    rank         this rank's index in the group.
    """

    def open(self, process_set: int, ranks: Sequence[int], rank: int, timeout: timedelta, label: str) -> None:
        """Called once, by the constructors of the classes that derive from this one and from a class of PyTorch."""
        self._set = process_set
        self._ranks = list(ranks)
        self._rank = rank
        self._timeout = timeout
        self._label = label
        self._flights = Flights(process_set)
        self._count = 0
        self._barrier = Barrier(process_set)
        self._reusable: dict[tuple[torch.dtype, int], Reusable] = {}  # by dtype and reduction; without those in use
        self._lock = threading.Lock()
        self._batch: list[Work] | None = None
        self._is_closed = False
        self._detach()

    def _detach(self) -> None:
        """The group holds nothing any more that the function set that creates groups: PyTorch's store, which may be a server
        on this rank, ends with the last object that holds it.
        """
        self.store: Any = None  # torch.distributed's store, where the members meet
        self.on_close: Callable[[], None] = lambda: None
        self.on_split: Callable[[list[int], timedelta, str, Any], Any] = lambda indices, timeout, label, store: None

    # What PyTorch calls of any group.

    def getBackendName(self) -> str:
        return "runjob"

    def _get_sequence_number_for_group(self) -> int:
        return self._count

    def _set_sequence_number_for_group(self) -> None:
        """Does nothing: the number is a count of calls."""

    def shutdown(self) -> None:
        """Ends the group on this rank, after its calls in flight. Later calls raise an error."""
        if not self._is_closed:
            self._is_closed = True
            self._flights.close("it was destroyed")
            self._flights.end()
            self.on_close()
            self._detach()
            self._flights.keep()

    def abort(self) -> None:
        """Ends the group on all its ranks. Calls in flight and later ones raise an error."""
        if not self._is_closed:
            self._flights.give_up(f"its rank {self._rank} called abort()")
            self.shutdown()

    # Reductions.

    def allreduce(self, tensors: list[Tensor], opts: Any = None) -> Work | None:
        if len(tensors) == 1 and self._allreduce_at_once(tensors[0], opts):
            return None
        return self._allreduce("allreduce", tensors, opts)

    def _allreduce_at_once(self, tensor: Tensor, opts: Any) -> bool:
        """Runs a synchronous allreduce that needs no other memory, with structs that are made once for each dtype and
        reduction. False if it is another one.
        """
        if not _TAKES_NONE or getattr(opts, "asyncOp", True) or self._batch is not None or self._flights.failure is not None:
            return False
        op, dtype = reductions.SIMPLE.get(opts.reduceOp.op.value), tensor.dtype
        if op is None or dtype not in DTYPES or not tensor.is_cpu or tensor.is_sparse or not is_dense(tensor):
            return False
        key = (dtype, op)
        # Another thread, or a signal handler in this one, makes structs of its own meanwhile.
        operation = self._reusable.pop(key, None) or Reusable(dtype, op, self._set)
        self._count += 1
        try:
            handle = operation.run_on(tensor)
        except Error as error:
            raise self._described("allreduce", error) from None
        if handle:
            self._kept("allreduce", [handle], [operation], [tensor], None, opts).wait()
        else:
            self._reusable[key] = operation
        return True

    def allreduce_coalesced(self, tensors: list[Tensor], opts: Any = None) -> Work | None:
        return self._allreduce("allreduce_coalesced", tensors, opts)

    def allreduce_sparse(self, tensors: list[Tensor], opts: Any = None) -> Work | None:
        return self._sparse("allreduce_sparse", _one(tensors), opts)

    def reduce(self, tensors: list[Tensor], opts: Any = None) -> Work | None:
        tensor = _one(tensors)
        return self._allreduce("reduce", [tensor], opts, keeps=self._is_root(opts))

    def _allreduce(self, what: str, tensors: list[Tensor], opts: Any, keeps: bool = True) -> Work | None:
        if any(tensor.is_sparse for tensor in tensors):
            return self._sparse(what, _one(tensors), opts)
        chosen = [reductions.of(_reduction(opts), tensor.dtype) for tensor in tensors]
        if chosen[0].op is None:
            return self._bitwise(what, tensors, chosen, opts, keeps)
        pairs: list[_Pair] = []
        results: list[_Pair] = []
        for tensor, reduction in zip(tensors, chosen):
            whole = dense(tensor)
            sent = reduction.sent(whole)
            output = sent if keeps and whole is tensor and reduction.is_direct else torch.empty_like(sent)
            pairs.append((sent, output))
            if keeps and output is not sent:
                results.append((tensor, output))

        def finish() -> None:
            for (tensor, output), reduction in zip(results, chosen):
                tensor.copy_(reduction.received(output, tensor).reshape(tensor.shape))

        parts = [
            Description("allreduce", [pair], process_set=self._set, op=reduction.op or 0, prescale=_number(reduction.prescale))
            for pair, reduction in zip(pairs, chosen)
        ]
        if len(parts) > 1 and len({(pair[0].dtype, reduction) for pair, reduction in zip(pairs, chosen)}) == 1:
            parts = [Description("allreduce", pairs, process_set=self._set, op=chosen[0].op or 0, prescale=_number(chosen[0].prescale))]
        return self._start(what, parts, tensors, finish if results else None, opts)

    def _bitwise(
        self, what: str, tensors: list[Tensor], chosen: list[reductions.Reduction], opts: Any, keeps: bool
    ) -> Work | None:
        gathered = [_empty(len(self._ranks), tensor) for tensor in tensors]
        parts = [self._gathering(tensor, room) for tensor, room in zip(tensors, gathered)]

        def finish() -> None:
            if keeps:
                for tensor, room, reduction in zip(tensors, gathered, chosen):
                    tensor.copy_(reduction.combined(room))

        return self._start(what, parts, tensors, finish, opts)

    def _sparse(self, what: str, tensor: Tensor, opts: Any) -> Work | None:
        """Gathers the indices and values of all ranks. The numbers of values differ, so that counts travel first."""
        mine = tensor.coalesce()
        counts = torch.empty(len(self._ranks), dtype=torch.int64)
        count = torch.tensor([mine._nnz()], dtype=torch.int64)
        self._run(what, [self._gathering(count, counts)], opts)
        total = int(counts.sum())
        values = torch.empty((total, *mine.values().shape[1:]), dtype=tensor.dtype, device=tensor.device)
        indices = torch.empty((total, mine.indices().shape[0]), dtype=torch.int64, device=tensor.device)
        row = math.prod(values.shape[1:])
        parts = [
            self._gathering(mine.values(), values, [each * row for each in counts.tolist()]),
            self._gathering(mine.indices().t(), indices, [each * indices.shape[1] for each in counts.tolist()]),
        ]

        def finish() -> None:
            whole = torch.sparse_coo_tensor(indices.t(), values, tensor.shape, check_invariants=False).coalesce()
            if _op_name(opts) == "AVG":
                whole = whole / len(self._ranks)
            tensor.copy_(whole)

        if _op_name(opts) not in ("SUM", "AVG"):
            raise ValueError(f"{what} of a sparse tensor takes SUM and AVG, not {_op_name(opts)}")
        return self._start(what, parts, [tensor], finish, opts)

    def reduce_scatter(self, outputs: list[Tensor], inputs: list[list[Tensor]], opts: Any = None) -> Work | None:
        output, parts = _one(outputs), _one(inputs)
        if len({part.numel() for part in parts}) == 1:
            return self._scatter_reduced("reduce_scatter", output, _joined(parts, output.dtype), opts)
        whole = _joined(parts, output.dtype)
        start = sum(part.numel() for part in parts[: self._rank])
        reduction = reductions.of(_reduction(opts), output.dtype)
        if reduction.op is None:
            room = _empty(len(self._ranks), whole)
            gathering = self._gathering(whole, room)

            def combine() -> None:
                output.copy_(reduction.combined(room)[start : start + output.numel()].reshape(output.shape))

            return self._start("reduce_scatter", [gathering], [output], combine, opts)
        sent = reduction.sent(whole)
        received = torch.empty_like(sent)
        part = Description(
            "allreduce", [(sent, received)], process_set=self._set, op=reduction.op or 0, prescale=_number(reduction.prescale)
        )

        def finish() -> None:
            all_parts = reduction.received(received, whole).reshape(-1)
            output.copy_(all_parts[start : start + output.numel()].reshape(output.shape))

        return self._start("reduce_scatter", [part], [output], finish, opts)

    def reduce_scatter_single(self, output: Tensor, input: Tensor, opts: Any = None) -> Work | None:
        return self._scatter_reduced("reduce_scatter_tensor", output, dense(input), opts)

    def reduce_scatter_single_coalesced(self, outputs: list[Tensor], inputs: list[Tensor], opts: Any = None) -> Work | None:
        prepared = [self._scattering(output, dense(tensor), opts) for output, tensor in zip(outputs, inputs)]
        return self._start("reduce_scatter_coalesced", [part for part, _ in prepared], outputs, _each(prepared), opts)

    def _scatter_reduced(self, what: str, output: Tensor, whole: Tensor, opts: Any) -> Work | None:
        part, finish = self._scattering(output, whole, opts)
        return self._start(what, [part], [output], finish, opts)

    def _scattering(self, output: Tensor, whole: Tensor, opts: Any) -> tuple[Any, Callable[[], None] | None]:
        size = len(self._ranks)
        if whole.numel() != size * output.numel():
            raise ValueError(f"reduce_scatter: the input has {whole.numel()} elements, not {size} times the output's {output.numel()}")
        reduction = reductions.of(_reduction(opts), output.dtype)
        if reduction.op is None:
            room = _empty(size, whole)

            def combine() -> None:
                output.copy_(reduction.combined(room).reshape(size, -1)[self._rank].reshape(output.shape))

            return self._gathering(whole, room), combine
        sent = reduction.sent(whole)
        is_direct = is_dense(output) and reduction.is_direct
        received = reductions.seen_as(output, reduction.dtype) if is_direct else torch.empty_like(sent[: sent.numel() // size])
        part = Description(
            "reducescatter",
            [(sent, received)],
            process_set=self._set,
            op=reduction.op,
            prescale=_number(reduction.prescale),
            rows=size,
        )
        if is_direct:
            return part, None
        return part, lambda: _copy(output, reduction.received(received, output))

    # Moves.

    def broadcast(self, tensors: list[Tensor], opts: Any = None) -> Work | None:
        tensor = _one(tensors)
        whole = dense(tensor)
        seen = _bytes_if_unknown(whole)
        part = Description("broadcast", [(seen, seen)], process_set=self._set, root=self._ranks[self._root(opts)])
        finish = None if whole is tensor else lambda: _copy(tensor, whole)
        return self._start("broadcast", [part], [tensor], finish, opts)

    def allgather(self, outputs: list[list[Tensor]], inputs: list[Tensor], opts: Any = None) -> Work | None:
        tensor, parts = _one(inputs), _one(outputs)
        self._check_count("all_gather", parts)
        room = torch.empty(sum(part.numel() for part in parts), dtype=tensor.dtype, device=tensor.device)
        part = self._gathering(tensor, room, [part.numel() for part in parts])
        return self._start("all_gather", [part], parts, lambda: _cut(room, parts), opts)

    def all_gather_single(self, output: Tensor, input: Tensor, opts: Any = None) -> Work | None:
        part, finish = self._gathering_into(output, input)
        return self._start("all_gather_into_tensor", [part], [output], finish, opts)

    def all_gather_single_coalesced(self, outputs: list[Tensor], inputs: list[Tensor], opts: Any = None) -> Work | None:
        prepared = [self._gathering_into(output, tensor) for output, tensor in zip(outputs, inputs)]
        return self._start("all_gather_coalesced", [part for part, _ in prepared], outputs, _each(prepared), opts)

    def allgather_coalesced(self, outputs: list[list[Tensor]], inputs: list[Tensor], opts: Any = None) -> Work | None:
        # outputs[rank][i] receives the tensor i of the rank.
        rooms = [_empty(len(self._ranks), tensor) for tensor in inputs]
        parts = [self._gathering(tensor, room) for tensor, room in zip(inputs, rooms)]

        def finish() -> None:
            for rank, tensors in enumerate(outputs):
                for tensor, room in zip(tensors, rooms):
                    _copy(tensor, room[rank])

        return self._start("all_gather_coalesced", parts, [each for row in outputs for each in row], finish, opts)

    def gather(self, outputs: list[list[Tensor]], inputs: list[Tensor], opts: Any = None) -> Work | None:
        receives = _one(outputs) if self._is_root(opts) else []
        if self._is_root(opts):
            self._check_count("gather", receives)
        return self._gather("gather", _one(inputs), receives, [part.numel() for part in receives], opts)

    def gather_single(self, output: Tensor, input: Tensor, opts: Any = None) -> Work | None:
        is_root, size = self._is_root(opts), len(self._ranks)
        return self._gather("gather_single", input, [output] if is_root else [], [output.numel() // size] * size if is_root else [], opts)

    def _gather(self, what: str, tensor: Tensor, receives: list[Tensor], takes: list[int], opts: Any) -> Work | None:
        root = self._root(opts)
        sends = [tensor.numel() if rank == root else 0 for rank in range(len(self._ranks))]
        return self._exchange(what, tensor, sends, receives, takes or [0] * len(self._ranks), opts)

    def scatter(self, outputs: list[Tensor], inputs: list[list[Tensor]], opts: Any = None) -> Work | None:
        output = _one(outputs)
        parts = _one(inputs) if self._is_root(opts) else []
        if parts:
            self._check_count("scatter", parts)
        sends = [part.numel() for part in parts] or [0] * len(self._ranks)
        root = self._root(opts)
        takes = [output.numel() if rank == root else 0 for rank in range(len(self._ranks))]
        return self._exchange("scatter", _joined(parts, output.dtype, output.device), sends, [output], takes, opts)

    def alltoall(self, outputs: list[Tensor], inputs: list[Tensor], opts: Any = None) -> Work | None:
        self._check_count("all_to_all", outputs)
        self._check_count("all_to_all", inputs)
        sends = [part.numel() for part in inputs]
        takes = [part.numel() for part in outputs]
        return self._exchange("all_to_all", _joined(inputs, inputs[0].dtype), sends, outputs, takes, opts)

    def all_to_all_single(
        self, output: Tensor, input: Tensor, output_splits: list[int], input_splits: list[int], opts: Any = None
    ) -> Work | None:
        size = len(self._ranks)
        for name, tensor, splits in (("output", output, output_splits), ("input", input, input_splits)):
            rows = tensor.shape[0] if tensor.dim() else 1
            if splits and (len(splits) != size or sum(splits) != rows):
                raise ValueError(f"all_to_all_single: the {name} splits {splits} do not divide {rows} rows among {size} ranks")
            if not splits and rows % size:
                raise ValueError(f"all_to_all_single: {rows} rows of the {name} cannot be divided among {size} ranks; give splits")
        sends, takes = _elements(input, input_splits, size), _elements(output, output_splits, size)
        return self._exchange("all_to_all_single", input, sends, [output], takes, opts)

    def _exchange(
        self, what: str, tensor: Tensor, sends: list[int], receives: list[Tensor], takes: list[int], opts: Any
    ) -> Work | None:
        """Sends `sends[r]` elements to rank r and takes `takes[r]` from it. What arrives fills `receives`, in the order of
        the ranks.
        """
        whole = _bytes_if_unknown(dense(tensor))
        factor = whole.numel() // tensor.numel() if tensor.numel() else 1
        is_direct = len(receives) == 1 and is_dense(receives[0])
        room = (
            receives[0]
            if is_direct
            else torch.empty(sum(part.numel() for part in receives), dtype=tensor.dtype, device=tensor.device)
        )
        seen = _bytes_if_unknown(room)
        part = Description(
            "alltoall", [(whole, seen)], process_set=self._set, splits=[count * factor for count in sends],
            takes=[count * factor for count in takes],
        )  # fmt: skip
        finish = None if is_direct else lambda: _cut(room, receives)
        return self._start(what, [part], receives, finish, opts)

    def _gathering_into(self, output: Tensor, tensor: Tensor) -> tuple[Any, Callable[[], None] | None]:
        size = len(self._ranks)
        if output.numel() != size * tensor.numel():
            raise ValueError(f"all_gather_into_tensor: the output has {output.numel()} elements, not {size} times the input's {tensor.numel()}")
        room = output if is_dense(output) else torch.empty_like(output, memory_format=torch.contiguous_format)
        part = self._gathering(tensor, room)
        return part, None if room is output else lambda: _copy(output, room)

    def _gathering(self, tensor: Tensor, room: Tensor, takes: Sequence[int] = ()) -> Description:
        """`takes`: the elements of each rank; without it, equally many."""
        size = len(self._ranks)
        seen = _bytes_if_unknown(room)
        factor = seen.numel() // room.numel() if room.numel() else 1
        counts = [count * factor for count in takes] or [seen.numel() // size] * size
        return Description("allgather", [(_bytes_if_unknown(dense(tensor)), seen)], process_set=self._set, takes=counts)

    # Messages.

    def send(self, tensors: list[Tensor], rank: int, tag: int) -> Work:
        return self._message(f"send to rank {rank}", _one(tensors), rank, tag, is_send=True)

    def recv(self, tensors: list[Tensor], rank: int, tag: int) -> Work:
        return self._message(f"recv from rank {rank}", _one(tensors), rank, tag, is_send=False)

    def recv_anysource(self, tensors: list[Tensor], tag: int) -> Work:
        return self._message("recv from any rank", _one(tensors), ANY_RANK, tag, is_send=False)

    def _message(self, what: str, tensor: Tensor, rank: int, tag: int, *, is_send: bool) -> Work:
        self._check_open(what)
        message = Message(tensor, rank, tag, self._set, is_send=is_send)
        work = MessageWork(self._flights, message, Label(what, 0, self._label, _calling_line()), self._seconds(None))
        if self._batch is not None:
            self._batch.append(work)
        return work

    # Waiting.

    def barrier(self, opts: Any = None) -> Work | None:
        return self._start("barrier", [self._barrier], [], None, opts)

    def monitored_barrier(self, timeout: Any = None, wait_all_ranks: bool = False) -> None:
        """A barrier with a time limit of its own: a timedelta, options that have one, or None for the group's."""
        opts = types.SimpleNamespace(timeout=getattr(timeout, "timeout", timeout))
        work = self._start("monitored_barrier", [self._barrier], [], None, opts, waits=False)
        assert work is not None
        work.wait()

    def start_coalescing(self) -> None:
        self._batch = []

    def end_coalescing(self) -> Work | None:
        batch, self._batch = self._batch or [], None
        return Work(self._flights, [], [], [], lambda: _end_all(batch), Label("a batch", 0, self._label), None) if batch else None

    def set_timeout(self, timeout: timedelta) -> None:
        self._timeout = timeout

    def _start(
        self,
        what: str,
        parts: Sequence[Any],
        outputs: Sequence[Tensor],
        finish: Callable[[], None] | None,
        opts: Any,
        waits: bool = True,
    ) -> Work | None:
        """Submits the parts in order. Returns the Work, or None when the call is synchronous and over."""
        self._check_open(what)
        is_over = self._batch is None and waits and not getattr(opts, "asyncOp", True)
        self._count += 1
        if is_over and len(parts) == 1:
            try:
                handle = parts[0].run()
            except Error as error:
                raise self._described(what, error) from None
            if handle:
                self._kept(what, [handle], parts, outputs, finish, opts).wait()
            elif finish is not None:
                finish()
            return None if _TAKES_NONE else self._kept(what, [], [], outputs, None, opts)
        handles: list[int] = []
        failure: Error | None = None
        with self._lock:
            for part in parts:
                try:
                    handles.append(part.submit())
                except Error as error:
                    failure = error
                    break
            work = self._kept(what, handles, parts[: len(handles)], outputs, finish, opts)
        if failure is not None:
            raise self._described(what, failure)
        if self._batch is not None:
            self._batch.append(work)
        if is_over:
            work.wait()
        return None if is_over and _TAKES_NONE else work

    def _kept(
        self, what: str, handles: list[int], parts: Sequence[Part], outputs: Sequence[Tensor], finish: Callable[[], None] | None, opts: Any
    ) -> Work:  # fmt: skip
        """The Work of operations that have just been submitted, which keeps their tensors until they are done."""
        work = Work(self._flights, handles, parts, outputs, finish, self._named(what, len(handles)), self._seconds(opts))
        if handles:
            self._flights.add(work)
        return work

    def _check_open(self, what: str) -> None:
        if self._flights.failure is not None:
            raise RuntimeError(f"{what} of {self._label}: the group has ended, because {self._flights.failure}")

    def _named(self, what: str, operations: int = 1) -> Label:
        """The name of the call that has just submitted this number of operations; 0: none."""
        count = c_int64()
        if operations:
            job.check(library().runjob_unnamed_count(self._set, byref(count)))
        return Label(what, max(0, count.value - operations + 1) if operations else 0, self._label, _calling_line())

    def _described(self, what: str, failure: Error) -> Error:
        """The error of a call that was over at once. What was refused has no number."""
        try:
            label = self._named(what, 0 if isinstance(failure, InvalidArgumentError) else 1)
        except Error:  # the job has ended
            label = Label(what, 0, self._label, _calling_line())
        return type(failure)(f"{label}: {failure}")

    def _run(self, what: str, parts: Sequence[Any], opts: Any) -> None:
        work = self._start(what, parts, [], None, opts, waits=False)
        assert work is not None
        work.wait()

    def _seconds(self, opts: Any) -> float | None:
        given = getattr(opts, "timeout", None)
        seconds = given.total_seconds() if given is not None else -1.0
        return seconds if seconds > 0 else self._timeout.total_seconds()

    def _root(self, opts: Any) -> int:
        """The root's index in the group. Errors  ValueError if there is none."""
        root: int = 0 if opts is None else opts.rootRank
        if not 0 <= root < len(self._ranks):
            raise ValueError(f"the root {root} is not in {self._label}, which has the ranks 0 to {len(self._ranks) - 1}")
        return root

    def _is_root(self, opts: Any) -> bool:
        return self._rank == self._root(opts)

    def _check_count(self, what: str, tensors: Sequence[Tensor]) -> None:
        if len(tensors) != len(self._ranks):
            raise ValueError(f"{what}: the list has {len(tensors)} tensors, and the group {len(self._ranks)} ranks")


def _calling_line() -> str:
    """The line of the program that called torch.distributed, with --verbose: " (train.py:33)"."""
    if os.environ.get(victims.VARIABLE) != "0":
        return ""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(("runjob.", "torch.")):
        frame = frame.f_back
    return f" ({os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno})"


def _one(given: Sequence[Any]) -> Any:
    if len(given) != 1:
        raise ValueError(f"an operation takes one tensor of each rank, not {len(given)}")
    return given[0]


def _empty(size: int, like: Tensor) -> Tensor:
    return torch.empty((size, *like.shape), dtype=like.dtype, device=like.device)


def _joined(parts: Sequence[Tensor], dtype: torch.dtype, device: torch.device | None = None) -> Tensor:
    if not parts:
        return torch.empty(0, dtype=dtype, device=device)
    return torch.cat([part.detach().reshape(-1) for part in parts])


def _elements(tensor: Tensor, splits: list[int], size: int) -> list[int]:
    """The elements of `tensor` for each rank: `splits` rows, or equally many."""
    rows = tensor.shape[0] if tensor.dim() else 1
    row = tensor.numel() // rows if rows else 0
    return [split * row for split in splits] or [tensor.numel() // size] * size


def _bytes_if_unknown(tensor: Tensor) -> Tensor:
    """A contiguous tensor's memory in a dtype that the library has."""
    flat = tensor.detach().view(-1)
    return flat if flat.dtype in DTYPES else flat.view(torch.uint8)


def _cut(whole: Tensor, parts: Sequence[Tensor]) -> None:
    """Copies consecutive pieces of `whole` to the parts."""
    for part, piece in zip(parts, torch.split(whole.view(-1), [part.numel() for part in parts])):
        _copy(part, piece)


def _copy(tensor: Tensor, values: Tensor) -> None:
    tensor.detach().copy_(values.reshape(tensor.shape))


def _each(prepared: Sequence[tuple[Any, Callable[[], None] | None]]) -> Callable[[], None] | None:
    finishes = [finish for _, finish in prepared if finish is not None]

    def finish() -> None:
        for each in finishes:
            each()

    return finish if finishes else None


def _end_all(works: Sequence[Work]) -> None:
    for work in works:
        work.wait()


def _number(prescale: Any) -> float:
    return 1.0 if isinstance(prescale, torch.Tensor) else float(prescale)


def _reduction(opts: Any) -> Any:
    return dist.ReduceOp.SUM if opts is None else opts.reduceOp


def _op_name(opts: Any) -> str:
    asked = _reduction(opts)
    return str(getattr(asked, "op", asked)).rsplit(".", 1)[-1]
