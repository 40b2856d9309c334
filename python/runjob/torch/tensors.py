"""A PyTorch tensor in the form that the C interface takes: pointer, shape, dtype."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import Array as CArray
from ctypes import c_int64
from typing import Any

import torch

from ..arrays import Arrays, c_array
from ..dtypes import NUMBERS

#: The dtypes that this PyTorch has. It has torch.uint16 from PyTorch 2.3 on.
DTYPES: dict[torch.dtype, int] = {getattr(torch, name): number for name, number in NUMBERS.items() if hasattr(torch, name)}


def check(tensor: Any, operation: str) -> None:
    """Checks a tensor on the CPU or a GPU; staging.py copies others to the CPU. Errors  ValueError for a value that is
    not a dense tensor of a known dtype; NotImplementedError for one without values.
    """
    if isinstance(tensor, torch.Tensor) and tensor.layout is torch.strided and tensor.dtype in DTYPES:
        if tensor.is_cpu or tensor.is_cuda:
            return
    if not isinstance(tensor, torch.Tensor):
        raise ValueError(f"{operation} takes a torch.Tensor, not {type(tensor).__name__}")
    if tensor.device.type not in ("cpu", "cuda"):
        raise NotImplementedError(f"{operation} of a tensor on {tensor.device}, which has no values")
    if tensor.layout != torch.strided:
        raise NotImplementedError(f"{operation} of a sparse tensor is not in this version of runjob; use tensor.to_dense()")
    raise ValueError(f"{operation} does not take {tensor.dtype}")


class Tensors(Arrays[torch.Tensor]):
    """PyTorch's tensors. Autograd does not know how results were computed."""

    no_room = (RuntimeError,)

    def dense(self, array: Any, operation: str) -> torch.Tensor:
        check(array, operation)
        tensor: torch.Tensor = array.detach() if array.requires_grad else array
        return tensor.contiguous().resolve_neg()  # for a view that negates its memory: the imaginary part of a conjugate

    def in_place(self, array: Any, operation: str) -> torch.Tensor:
        check(array, operation)
        tensor: torch.Tensor = array
        if not tensor.is_contiguous():
            raise ValueError(f"{operation} works in place and needs a contiguous tensor; use tensor.contiguous()")
        if tensor.is_neg():
            raise ValueError(f"{operation} works in place and does not take a view that negates its memory; use tensor.resolve_neg()")
        return tensor

    def copy(self, array: Any, operation: str) -> torch.Tensor:
        check(array, operation)
        tensor: torch.Tensor = array.detach().clone(memory_format=torch.contiguous_format)
        return tensor

    def empty(self, shape: Sequence[int], like: torch.Tensor) -> torch.Tensor:
        return torch.empty(shape, dtype=like.dtype, device=like.device)

    def empty_like(self, array: torch.Tensor) -> torch.Tensor:
        return torch.empty_like(array)

    def cut(self, array: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
        reserved = array.numel()
        if array.shape != shape:
            array.resize_(shape)  # not a view: autograd would refuse changes in place
        return array if 2 * array.numel() >= reserved else array.clone()  # a copy, so that the larger memory is freed

    def splits(self, rows: list[int]) -> torch.Tensor:
        return torch.tensor(rows, dtype=torch.int32, device="cpu")

    address = staticmethod(torch.Tensor.data_ptr)  # type: ignore[assignment]  # a Python function would take longer

    def nbytes(self, array: torch.Tensor) -> int:
        return array.nbytes

    def shape(self, array: torch.Tensor) -> tuple[int, ...]:
        return array.shape

    def form(self, array: torch.Tensor) -> tuple[CArray[c_int64], int, int]:
        shape = array.shape
        return c_array(shape), len(shape), DTYPES[array.dtype]

    def is_array(self, value: object) -> bool:
        return isinstance(value, torch.Tensor)
