"""PyTorch's GPUs, in the form that the calls on them need. All calls of torch.cuda are here, so that a test can replace
the devices.
"""

from __future__ import annotations

import warnings
from ctypes import c_void_p
from typing import Any, NamedTuple

import torch

from .. import job
from ..backends import backends


class Place(NamedTuple):
    """A GPU by CUDA's ordinal, and PyTorch's current stream on it as a number, 0 for CUDA's default one."""

    ordinal: int
    stream: int


def is_on_gpu(value: Any) -> bool:
    """True for a tensor of any GPU. objection() decides which GPUs the library can use."""
    return isinstance(value, torch.Tensor) and value.is_cuda


def place_of(tensor: torch.Tensor) -> Place:
    """The GPU of the tensor, with the caller's current stream."""
    ordinal = tensor.get_device()
    return Place(ordinal, torch.cuda.current_stream(ordinal).cuda_stream)


class _Lent:
    """Bytes of a GPU that the library provides, for torch.as_tensor(), which refuses read-only memory."""

    def __init__(self, address: int, count: int) -> None:
        self.__cuda_array_interface__ = {"shape": (count,), "typestr": "|u1", "data": (address, False), "version": 2}


def copy(data: c_void_p, into: torch.Tensor) -> None:
    """Queues a copy of the memory at an address on the GPU of `into` to `into`."""
    lent = torch.as_tensor(_Lent(data.value or 0, into.nbytes), device=into.device)
    into.view(-1).view(torch.uint8).copy_(lent)


def event(of: torch.Tensor) -> Any:
    """An event, whose query() is true when the current stream of the tensor's GPU has done its work up to now."""
    recorded = torch.cuda.Event()  # type: ignore[no-untyped-call]
    recorded.record(torch.cuda.current_stream(of.device))
    return recorded


def wait(recorded: Any, of: torch.Tensor, on_host: bool) -> None:
    """Makes the current stream of the tensor's GPU wait for an event(), or the caller."""
    if on_host:
        recorded.synchronize()
    else:
        torch.cuda.current_stream(of.device).wait_event(recorded)


_is_known = False
_objection = ""


def _find_objection() -> str:
    if torch.version.hip is not None:
        return "this PyTorch is for AMD's GPUs, which runjob cannot use"
    driver = backends()["cuda"]
    return "" if driver.get("available") else str(driver.get("reason") or "the driver is not there")


def objection() -> str:
    """The reason why the library cannot take tensors of GPUs in this process; empty if it can. It opens the driver, and
    makes no context.

    The first call with a reason prints it, as a warning, on the first rank of each host.
    """
    global _is_known, _objection
    if not _is_known:
        _objection = _find_objection()
        _is_known = True
        if _objection and job.local_rank() == 0:
            warnings.warn(f"tensors on GPUs are copied to the CPU and back: {_objection}", RuntimeWarning, stacklevel=2)
    return _objection
