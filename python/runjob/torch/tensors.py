"""A PyTorch tensor as the C interface wants it: pointer, shape, dtype."""

from __future__ import annotations

import functools
from ctypes import Array, c_int64

import torch

#: runjob_dtype of runjob.h. torch.uint16 is there from PyTorch 2.3 on.
DTYPES = {
    torch.uint8: 0,
    torch.int8: 1,
    torch.int16: 3,
    torch.int32: 4,
    torch.int64: 5,
    torch.float16: 6,
    torch.float32: 7,
    torch.float64: 8,
    torch.bool: 9,
    torch.bfloat16: 10,
}
if hasattr(torch, "uint16"):
    DTYPES[torch.uint16] = 2


def check(tensor: torch.Tensor, operation: str) -> None:
    """Errors  ValueError for what is no dense tensor of a known dtype; NotImplementedError for one that is not on the CPU."""
    if isinstance(tensor, torch.Tensor) and tensor.is_cpu and tensor.layout is torch.strided and tensor.dtype in DTYPES:
        return
    if not isinstance(tensor, torch.Tensor):
        raise ValueError(f"{operation} takes a torch.Tensor, not {type(tensor).__name__}")
    if tensor.device.type != "cpu":
        raise NotImplementedError(
            f"{operation} of a tensor on {tensor.device}: this version of runjob moves CPU tensors only; "
            "GPU tensors come with the NCCL backend. Use tensor.cpu() until then"
        )
    if tensor.layout != torch.strided:
        raise NotImplementedError(f"{operation} of a sparse tensor is not in this version of runjob; use tensor.to_dense()")
    raise ValueError(f"{operation} does not take {tensor.dtype}")


def check_in_place(tensor: torch.Tensor, operation: str) -> None:
    """check(), and  Errors  ValueError for a tensor that is not contiguous: its memory is handed over as it is."""
    check(tensor, operation)
    if not tensor.is_contiguous():
        raise ValueError(f"{operation} works in place and needs a contiguous tensor; use tensor.contiguous()")


def dense(tensor: torch.Tensor) -> torch.Tensor:
    """`tensor`'s values in one piece, unknown to autograd: its own memory where that will do."""
    if tensor.requires_grad:
        tensor = tensor.detach()
    return tensor.contiguous()


def shape_of(tensor: torch.Tensor) -> Array[c_int64]:
    """The extents of `tensor` as a C array, for reading only: tensors of one shape share it."""
    return _c_array(tensor.shape)


@functools.lru_cache(maxsize=1024)
def _c_array(shape: torch.Size) -> Array[c_int64]:
    return (c_int64 * len(shape))(*shape)
