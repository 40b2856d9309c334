"""CPU tensors in the part of a GPU's, over the stand-ins of CUDA and NCCL: a rank that installs it reduces them as it would reduce CUDA
tensors. What it cannot show is the order of PyTorch's own work on a stream, since that work is done at once here.
"""

from __future__ import annotations

import ctypes
import os
from ctypes import byref, c_ulonglong, c_void_p

import torch

import runjob.torch as hvd
import stand_in_batch_norm
from ranks import ROOT
from runjob.torch import gpu_calls, gpus

FOLDER = ROOT / "build/release/lib/gpu_stand_in"
VARIABLE = "TEST_STAND_IN_GPU"  # this folder: each rank of the Python tests installs it


def is_built() -> bool:
    return (FOLDER / "libcuda.so.1").exists()


class Event:
    """After work that was waited for, as all of PyTorch's is here."""

    def query(self) -> bool:
        return True


class StandInGpu:
    """This process's GPU, in its primary context and with CUDA's default stream."""

    def __init__(self) -> None:
        os.environ["RUNJOB_NCCL_LIBRARY"] = str(FOLDER / "libnccl.so.2")  # not the one that PyTorch has loaded
        os.environ["RUNJOB_STAND_IN_HOST_MEMORY"] = "1"
        self.driver = ctypes.CDLL(str(FOLDER / "libcuda.so.1"))
        context = c_void_p()
        assert self.driver.cuInit(0) == 0
        assert self.driver.cuDevicePrimaryCtxRetain(byref(context), 0) == 0
        self._context = context

    def synchronize(self) -> None:
        """Waits for the default stream of the GPU, in any thread."""
        popped = c_void_p()
        self.driver.cuCtxPushCurrent_v2(self._context)
        self.driver.cuStreamSynchronize(None)
        self.driver.cuCtxPopCurrent_v2(byref(popped))

    def copy(self, data: c_void_p, into: torch.Tensor) -> None:
        popped = c_void_p()
        self.driver.cuCtxPushCurrent_v2(self._context)
        copied = self.driver.cuMemcpyDtoDAsync_v2(
            c_ulonglong(into.data_ptr()), c_ulonglong(data.value), ctypes.c_size_t(into.nbytes), None
        )
        assert copied == 0
        self.driver.cuStreamSynchronize(None)
        self.driver.cuCtxPopCurrent_v2(byref(popped))


def install(is_on_gpu=lambda value: isinstance(value, torch.Tensor) and value.is_cpu, waits_on_host=True) -> StandInGpu:
    """From now on `is_on_gpu` says which tensors are a GPU's. Each rank has GPU 0 of stand-ins of its own."""
    gpu = StandInGpu()
    os.environ["NCCL_HOSTID"] = os.environ.get("RUNJOB_RANK", "0")
    gpus.is_on_gpu = is_on_gpu
    gpus.place_of = lambda tensor: gpus.Place(0, 0)
    gpus.copy = gpu.copy
    gpus.event = lambda tensor: Event()
    gpus.wait = lambda event, tensor, on_host: None
    gpu_calls._waits_on_host = waits_on_host
    stand_in_batch_norm.install()
    assert gpus.objection() == "", gpus.objection()
    assert hvd.nccl_built() > 0
    return gpu
