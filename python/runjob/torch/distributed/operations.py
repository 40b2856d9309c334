"""The operations of torch.distributed on one group, over the library's collectives.

All methods have the names and arguments by which torch.distributed calls a group or a backend. Tensors may be of any
dtype and need not be contiguous; ranks may give lists of unequal tensors where torch.distributed allows it. A method
returns None instead of a Work if the call is synchronous and over.

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

import collections
import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import torch

from ..tensors import DTYPES
from . import reductions
from .messages import ANY_RANK, Message, MessageWork
from .submission import Barrier, Description, Part
from .work import Flights, Work

Tensor = torch.Tensor

#: The names that operations of one signature take in turn: as many of them can be in flight.
_TURNS = 4

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
        self._flights = Flights()
        self._count = 0
        self._turns: collections.Counter[str] = collections.Counter()  # by signature: the turn of the next operation
        self._named: dict[str, Work] = {}  # the last work of each name
        self._lock = threading.Lock()
        self._batch: list[Work] | None = None
        self._is_closed = False
        self.on_close: Callable[[], None] = lambda: None

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
            self._flights.give_up("it was destroyed")
            self._flights.end()
            self.on_close()
            self._flights.keep()

    abort = shutdown

    # Reductions.

    def allreduce(self, tensors: list[Tensor], opts: Any) -> Work | None:
        return self._allreduce("allreduce", tensors, opts)

    def allreduce_coalesced(self, tensors: list[Tensor], opts: Any) -> Work | None:
        return self._allreduce("allreduce_coalesced", tensors, opts)

    def allreduce_sparse(self, tensors: list[Tensor], opts: Any) -> Work | None:
        return self._sparse("allreduce_sparse", _one(tensors), opts)

    def reduce(self, tensors: list[Tensor], opts: Any) -> Work | None:
        tensor = _one(tensors)
        return self._allreduce("reduce", [tensor], opts, keeps=self._rank == opts.rootRank)

    def _allreduce(self, what: str, tensors: list[Tensor], opts: Any, keeps: bool = True) -> Work | None:
        if any(tensor.is_sparse for tensor in tensors):
            return self._sparse(what, _one(tensors), opts)
        chosen = [reductions.of(opts.reduceOp, tensor.dtype) for tensor in tensors]
        if chosen[0].op is None:
            return self._bitwise(what, tensors, chosen, opts, keeps)
        pairs: list[_Pair] = []
        results: list[_Pair] = []
        for tensor, reduction in zip(tensors, chosen):
            whole = tensor.contiguous()
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
        self._run(what, [Description("allgather", [(count, counts)], process_set=self._set)], opts)
        total = int(counts.sum())
        values = torch.empty((total, *mine.values().shape[1:]), dtype=tensor.dtype, device=tensor.device)
        indices = torch.empty((total, mine.indices().shape[0]), dtype=torch.int64, device=tensor.device)
        parts = [
            self._gathering(mine.values().contiguous(), values),
            self._gathering(mine.indices().t().contiguous(), indices),
        ]

        def finish() -> None:
            whole = torch.sparse_coo_tensor(indices.t(), values, tensor.shape).coalesce()
            if _op_name(opts) == "AVG":
                whole = whole / len(self._ranks)
            tensor.copy_(whole)

        if _op_name(opts) not in ("SUM", "AVG"):
            raise ValueError(f"{what} of a sparse tensor takes SUM and AVG, not {_op_name(opts)}")
        return self._start(what, parts, [tensor], finish, opts)

    def reduce_scatter(self, outputs: list[Tensor], inputs: list[list[Tensor]], opts: Any) -> Work | None:
        output, parts = _one(outputs), _one(inputs)
        if len({part.numel() for part in parts}) == 1:
            return self._scatter_reduced("reduce_scatter", output, _joined(parts, output.dtype), opts)
        whole = _joined(parts, output.dtype)
        start = sum(part.numel() for part in parts[: self._rank])
        reduction = reductions.of(opts.reduceOp, output.dtype)
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

    def reduce_scatter_single(self, output: Tensor, input: Tensor, opts: Any) -> Work | None:
        return self._scatter_reduced("reduce_scatter_tensor", output, input.contiguous(), opts)

    def reduce_scatter_single_coalesced(self, outputs: list[Tensor], inputs: list[Tensor], opts: Any) -> Work | None:
        prepared = [self._scattering(output, tensor.contiguous(), opts) for output, tensor in zip(outputs, inputs)]
        return self._start("reduce_scatter_coalesced", [part for part, _ in prepared], outputs, _each(prepared), opts)

    def _scatter_reduced(self, what: str, output: Tensor, whole: Tensor, opts: Any) -> Work | None:
        part, finish = self._scattering(output, whole, opts)
        return self._start(what, [part], [output], finish, opts)

    def _scattering(self, output: Tensor, whole: Tensor, opts: Any) -> tuple[Any, Callable[[], None] | None]:
        size = len(self._ranks)
        if whole.numel() != size * output.numel():
            raise ValueError(f"reduce_scatter: the input has {whole.numel()} elements, not {size} times the output's {output.numel()}")
        reduction = reductions.of(opts.reduceOp, output.dtype)
        if reduction.op is None:
            room = _empty(size, whole)

            def combine() -> None:
                output.copy_(reduction.combined(room).reshape(size, -1)[self._rank].reshape(output.shape))

            return self._gathering(whole, room), combine
        sent = reduction.sent(whole)
        is_direct = output.is_contiguous() and reduction.is_direct
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

    def broadcast(self, tensors: list[Tensor], opts: Any) -> Work | None:
        tensor = _one(tensors)
        whole = tensor.contiguous()
        seen = _bytes_if_unknown(whole)
        part = Description("broadcast", [(seen, seen)], process_set=self._set, root=self._job_rank(opts.rootRank))
        finish = None if whole is tensor else lambda: _copy(tensor, whole)
        return self._start("broadcast", [part], [tensor], finish, opts)

    def allgather(self, outputs: list[list[Tensor]], inputs: list[Tensor], opts: Any) -> Work | None:
        tensor, parts = _one(inputs), _one(outputs)
        self._check_count("all_gather", parts)
        room = torch.empty(sum(part.numel() for part in parts), dtype=tensor.dtype, device=tensor.device)
        part = self._gathering(tensor.contiguous(), room)
        return self._start("all_gather", [part], parts, lambda: _cut(room, parts), opts)

    def all_gather_single(self, output: Tensor, input: Tensor, opts: Any) -> Work | None:
        part, finish = self._gathering_into(output, input)
        return self._start("all_gather_into_tensor", [part], [output], finish, opts)

    def all_gather_single_coalesced(self, outputs: list[Tensor], inputs: list[Tensor], opts: Any) -> Work | None:
        prepared = [self._gathering_into(output, tensor) for output, tensor in zip(outputs, inputs)]
        return self._start("all_gather_coalesced", [part for part, _ in prepared], outputs, _each(prepared), opts)

    def allgather_coalesced(self, outputs: list[list[Tensor]], inputs: list[Tensor], opts: Any) -> Work | None:
        # outputs[rank][i] receives the tensor i of the rank.
        rooms = [_empty(len(self._ranks), tensor) for tensor in inputs]
        parts = [self._gathering(tensor.contiguous(), room) for tensor, room in zip(inputs, rooms)]

        def finish() -> None:
            for rank, tensors in enumerate(outputs):
                for tensor, room in zip(tensors, rooms):
                    _copy(tensor, room[rank])

        return self._start("all_gather_coalesced", parts, [each for row in outputs for each in row], finish, opts)

    def gather(self, outputs: list[list[Tensor]], inputs: list[Tensor], opts: Any) -> Work | None:
        return self._gather("gather", _one(inputs), _one(outputs) if self._rank == opts.rootRank else [], opts)

    def gather_single(self, output: Tensor, input: Tensor, opts: Any) -> Work | None:
        return self._gather("gather_single", input, [output] if self._rank == opts.rootRank else [], opts)

    def _gather(self, what: str, tensor: Tensor, receives: list[Tensor], opts: Any) -> Work | None:
        sends = [tensor.numel() if rank == opts.rootRank else 0 for rank in range(len(self._ranks))]
        return self._exchange(what, tensor, sends, receives, opts)

    def scatter(self, outputs: list[Tensor], inputs: list[list[Tensor]], opts: Any) -> Work | None:
        output = _one(outputs)
        parts = _one(inputs) if self._rank == opts.rootRank else []
        if parts:
            self._check_count("scatter", parts)
        sends = [part.numel() for part in parts] or [0] * len(self._ranks)
        return self._exchange("scatter", _joined(parts, output.dtype, output.device), sends, [output], opts)

    def alltoall(self, outputs: list[Tensor], inputs: list[Tensor], opts: Any) -> Work | None:
        self._check_count("all_to_all", outputs)
        self._check_count("all_to_all", inputs)
        sends = [part.numel() for part in inputs]
        return self._exchange("all_to_all", _joined(inputs, inputs[0].dtype), sends, outputs, opts)

    def all_to_all_single(
        self, output: Tensor, input: Tensor, output_splits: list[int], input_splits: list[int], opts: Any
    ) -> Work | None:
        size = len(self._ranks)
        for name, tensor, splits in (("output", output, output_splits), ("input", input, input_splits)):
            rows = tensor.shape[0] if tensor.dim() else 1
            if splits and (len(splits) != size or sum(splits) != rows):
                raise ValueError(f"all_to_all_single: the {name} splits {splits} do not divide {rows} rows among {size} ranks")
            if not splits and rows % size:
                raise ValueError(f"all_to_all_single: {rows} rows of the {name} cannot be divided among {size} ranks; give splits")
        rows = input.shape[0] if input.dim() else 1
        row = input.numel() // rows if rows else 0
        sends = [split * row for split in input_splits] or [input.numel() // size] * size
        return self._exchange("all_to_all_single", input, sends, [output], opts)

    def _exchange(self, what: str, tensor: Tensor, sends: list[int], receives: list[Tensor], opts: Any) -> Work | None:
        """Sends `sends[r]` elements to rank r. What arrives fills `receives`, in the order of the ranks."""
        whole = _bytes_if_unknown(tensor.contiguous())
        factor = whole.numel() // tensor.numel() if tensor.numel() else 1
        is_direct = len(receives) == 1 and receives[0].is_contiguous()
        room = (
            receives[0]
            if is_direct
            else torch.empty(sum(part.numel() for part in receives), dtype=tensor.dtype, device=tensor.device)
        )
        seen = _bytes_if_unknown(room)
        part = Description("alltoall", [(whole, seen)], process_set=self._set, splits=[count * factor for count in sends])
        finish = None if is_direct else lambda: _cut(room, receives)
        return self._start(what, [part], receives, finish, opts)

    def _gathering_into(self, output: Tensor, tensor: Tensor) -> tuple[Any, Callable[[], None] | None]:
        size = len(self._ranks)
        if output.numel() != size * tensor.numel():
            raise ValueError(f"all_gather_into_tensor: the output has {output.numel()} elements, not {size} times the input's {tensor.numel()}")
        room = output if output.is_contiguous() else torch.empty_like(output, memory_format=torch.contiguous_format)
        part = self._gathering(tensor.contiguous(), room)
        return part, None if room is output else lambda: _copy(output, room)

    def _gathering(self, tensor: Tensor, room: Tensor) -> Description:
        return Description("allgather", [(_bytes_if_unknown(tensor.contiguous()), _bytes_if_unknown(room))], process_set=self._set)

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
        work = MessageWork(self._flights, message, f"{what} of {self._label}", self._seconds(None))
        if self._batch is not None:
            self._batch.append(work)
        return work

    # Waiting.

    def barrier(self, opts: Any) -> Work | None:
        return self._start("barrier", [Barrier(self._set)], [], None, opts)

    def monitored_barrier(self, opts: Any, wait_all_ranks: bool = False) -> None:
        work = self._start("monitored_barrier", [Barrier(self._set)], [], None, opts, waits=False)
        assert work is not None
        work.wait()

    def start_coalescing(self) -> None:
        self._batch = []

    def end_coalescing(self) -> Work | None:
        batch, self._batch = self._batch or [], None
        return Work(self._flights, [], [], [], lambda: _end_all(batch), f"a batch of {self._label}", None) if batch else None

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
        handles: list[int] = []
        is_over = self._batch is None and waits and not getattr(opts, "asyncOp", True)
        with self._lock:
            self._count += 1
            label = f"{what} number {self._count} of {self._label}"
            work = Work(self._flights, handles, parts, outputs, finish, label, self._seconds(opts))
            for part in parts:
                name = self._name(what, part.signature, work)
                if is_over and len(parts) == 1:
                    handle = work.attempt(lambda: part.run(name))
                else:
                    handle = part.submit(name)
                if handle:
                    handles.append(handle)
            if handles:
                self._flights.add(work)
        if self._batch is not None:
            self._batch.append(work)
        if is_over:
            work.wait()
            return None
        return work

    def _check_open(self, what: str) -> None:
        if self._flights.failure is not None:
            raise RuntimeError(f"{what} of {self._label}: the group has ended, because {self._flights.failure}")

    def _name(self, what: str, signature: str, work: Work) -> bytes:
        """The name of the next operation of this signature, the same on all ranks. Names are used again, so that a step
        that repeats has the same ones; the operation that had the name before must be over.
        """
        turn = self._turns[signature]
        self._turns[signature] = (turn + 1) % _TURNS
        name = f"{what}.{signature}.{turn}"
        earlier = self._named.get(name)
        if earlier is not None and not earlier.is_over():
            earlier.end()
        self._named[name] = work
        return name.encode()

    def _run(self, what: str, parts: Sequence[Any], opts: Any) -> None:
        work = self._start(what, parts, [], None, opts, waits=False)
        assert work is not None
        work.wait()

    def _seconds(self, opts: Any) -> float | None:
        given = getattr(opts, "timeout", None)
        seconds = given.total_seconds() if given is not None else -1.0
        return seconds if seconds > 0 else self._timeout.total_seconds()

    def _job_rank(self, rank: int) -> int:
        if not 0 <= rank < len(self._ranks):
            raise ValueError(f"the root {rank} is not in the group, which has {len(self._ranks)} ranks")
        return self._ranks[rank]

    def _check_count(self, what: str, tensors: Sequence[Tensor]) -> None:
        if len(tensors) != len(self._ranks):
            raise ValueError(f"{what}: the list has {len(tensors)} tensors, and the group {len(self._ranks)} ranks")


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


def _op_name(opts: Any) -> str:
    return str(getattr(opts.reduceOp, "op", opts.reduceOp)).rsplit(".", 1)[-1]
