"""Adasum of tensors that the library does not reduce itself, which are those of GPUs: by collectives that it has for
them, and PyTorch's operations between these. The factors of the ranks' tensors are the library's.

Each tensor is cut by itself into a slice for each rank. An alltoall gives each rank its slice of all ranks' tensors, an
allreduce adds up the slices' dot products in float64, and an allgather collects the sums of the slices.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable

import torch

from .. import process_sets
from .._library import library
from ..calls import Calls, Reduction
from ..handles import Call, Collective
from ..job import check
from ..reduce_ops import Sum, check_adasum
from . import gpus
from .tensors import check as check_tensor

_COMPRESSED = {1: torch.float16, 2: torch.bfloat16}
_WIDE = (torch.float32, torch.float64)
_PIECE = 1 << 20  # elements that are converted to float64 at once


class AdasumCall(Call):
    """The allreduce of `tensors`, which are on one device and may differ in dtype. It runs in submit(), which blocks
    until the other ranks have submitted theirs, and the dot products have come to the host. So all ranks submit these
    operations in the same order. A rank that has joined takes no part, so that they fail then.

    calls   the collectives for tensors of that device.
    finish  gives the output for the list of results, which are new tensors. Called in submit().
    waits_on_host  wait() waits for a GPU on the host instead of in the current stream.
    """

    __slots__ = ("_calls", "_event", "_finish", "_output", "_reduction", "_waits_on_host")

    def __init__(
        self, calls: Calls[torch.Tensor], kind: Collective, name: str | None, tensors: Sequence[torch.Tensor],
        reduction: Reduction, finish: Callable[[list[torch.Tensor]], Any], waits_on_host: bool = False,
    ) -> None:  # fmt: skip
        for tensor in tensors:
            check_tensor(tensor, kind.name)
            check_adasum(kind.name, str(tensor.dtype).removeprefix("torch."))
        set_id = process_sets.identifier(reduction.process_set)
        super().__init__(kind, name, None, tuple(tensors), lambda core: self._output, set_id)
        self._calls = calls
        self._reduction = reduction
        self._finish = finish
        self._waits_on_host = waits_on_host
        self._output: Any = None
        self._event: Any = None

    def submit(self, wire_name: bytes) -> None:
        with torch.no_grad():
            self._output = self._finish(_adasum(self._calls, self.tensors, self._reduction, wire_name))
        self._event = gpus.event(self.tensors[0]) if gpus.is_on_gpu(self.tensors[0]) else None

    def block(self, wire_name: bytes) -> Any:
        self.submit(wire_name)
        self.wait()
        return self.take()

    def poll(self) -> int:
        return int(self._event is None or bool(self._event.query()))

    def wait(self) -> None:
        if self._event is not None:
            gpus.wait(self._event, self.tensors[0], self._waits_on_host)

    def release(self) -> None:
        self._output = None


def _adasum(calls: Calls[torch.Tensor], tensors: Sequence[torch.Tensor], reduction: Reduction, name: bytes) -> list[torch.Tensor]:
    sent = [_sent(tensor.detach(), reduction) for tensor in tensors]
    by_dtype = [[place for place, each in enumerate(sent) if each.dtype == dtype] for dtype in dict.fromkeys(each.dtype for each in sent)]
    parts = [_Part(calls, [sent[place] for place in places], reduction, name + b".%d" % number) for number, places in enumerate(by_dtype)]
    order = [place for places in by_dtype for place in places]
    dots = torch.stack([dots for part in parts for dots in part.dot_products()])
    calls.allreduce(dots, None, Reduction(Sum, 1.0, 1.0, reduction.process_set), in_place=True).block(name + b".products")
    # Values that are compressed are scaled before. Factors above 1 could then be too large for 16 bits.
    inside = [1.0 if sent[place].dtype != tensors[place].dtype else reduction.prescale_factor for place in order]
    after = [
        reduction.postscale_factor if sent[place].dtype != tensors[place].dtype and abs(reduction.postscale_factor) > 1 else 1.0
        for place in order
    ]
    before = torch.tensor(inside, dtype=torch.float64, device="cpu")
    scales = before * reduction.postscale_factor / torch.tensor(after, dtype=torch.float64, device="cpu")
    factors = _factors(dots.cpu() * before.square()[:, None, None]) * scales[:, None]
    results: list[Any] = [None] * len(tensors)
    rest = list(factors.to(dots.device))
    for part, places in zip(parts, by_dtype):
        own, rest = rest[: len(places)], rest[len(places) :]
        for place, result in zip(places, part.sums(own)):
            results[place] = result
    for place, last in zip(order, after):
        result = results[place].to(tensors[place].dtype)
        results[place] = (result if last == 1 else result * last).view(tensors[place].shape)
    return results


def _sent(tensor: torch.Tensor, reduction: Reduction) -> torch.Tensor:
    """The values that travel, in one piece."""
    if reduction.native and tensor.dtype in _WIDE:
        tensor = (tensor * reduction.prescale_factor).to(_COMPRESSED[reduction.native])
    return tensor.contiguous().resolve_neg().view(-1)


def _factors(dots: torch.Tensor) -> torch.Tensor:
    """The factors of all ranks' tensors, from the matrices of their dot products."""
    dots = dots.contiguous()
    count, size, _ = dots.shape
    factors = torch.empty((count, size), dtype=torch.float64, device="cpu")
    check(library().runjob_adasum_factors(dots.data_ptr(), count, size, factors.data_ptr()))
    return factors


class _Part:
    """The tensors of one dtype, and this rank's slices of all ranks' tensors."""

    def __init__(self, calls: Calls[torch.Tensor], tensors: Sequence[torch.Tensor], reduction: Reduction, name: bytes) -> None:
        self._calls = calls
        self._set = reduction.process_set
        self._name = name
        self._size, rank = process_sets.size_of(self._set), process_sets.rank_in(self._set)
        cut = [tensor.tensor_split(self._size) for tensor in tensors]
        packed = torch.cat([slices[peer] for peer in range(self._size) for slices in cut]) if len(tensors) > 1 else tensors[0]
        self._counts = [[slices[peer].numel() for slices in cut] for peer in range(self._size)]  # by rank, then by tensor
        received, _ = calls.alltoall(packed, list(map(sum, self._counts)), None, self._set).block(name + b".slices")
        self._slices = received.view(self._size, -1 if received.numel() else 0).split(self._counts[rank], dim=1)

    def dot_products(self) -> list[torch.Tensor]:
        """The matrix of each tensor, of this rank's slices alone."""
        matrices = []
        for slices in self._slices:
            matrix = torch.zeros((self._size, self._size), dtype=torch.float64, device=slices.device)
            for piece in slices.split(_PIECE, dim=1):
                wide = piece.to(torch.float64)
                matrix += wide @ wide.t()
            matrices.append(matrix)
        return matrices

    def sums(self, factors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """The results of all tensors, flat."""
        own = [
            (factor @ piece.to(torch.float64)).to(piece.dtype)
            for factor, slices in zip(factors, self._slices)
            for piece in slices.split(_PIECE, dim=1)
        ]
        gathered = self._calls.allgather(torch.cat(own), None, self._set).block(self._name + b".sums")
        cut = iter(gathered.split([count for counts in self._counts for count in counts]))
        by_rank = [[next(cut) for _ in counts] for counts in self._counts]
        return [torch.cat(slices) for slices in zip(*by_rank)] if len(factors) > 1 else [gathered]
