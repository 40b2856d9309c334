"""python/runjob/torch/gpus.py where there is no GPU. What needs one is in packaging/gpu_check/torch_operations.py."""

import warnings

import pytest
import torch

import runjob.torch as hvd
from runjob.torch import gpus


def test_tensors_of_the_cpu_and_without_values_are_not_on_a_gpu():
    assert not gpus.is_on_gpu(torch.ones(2))
    assert not gpus.is_on_gpu(torch.ones(2, device="meta"))
    assert not gpus.is_on_gpu([1.0])


def _staged(cuda, hip):
    """The results of tensors that take the place of a GPU's, and the warnings, in a process with this driver and this PyTorch."""
    hvd.init()
    with warnings.catch_warnings(record=True) as caught, pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("always")
        patch.setattr(gpus, "is_on_gpu", lambda value: isinstance(value, torch.Tensor) and value.dtype == torch.float64)
        patch.setattr(gpus, "_is_known", False)
        patch.setattr(gpus, "backends", lambda: {"cuda": cuda})
        patch.setattr(torch.version, "hip", hip)
        outputs = [hvd.allreduce(torch.ones(2, dtype=torch.float64), op=hvd.Sum).tolist() for _ in range(3)]
    hvd.shutdown()
    return outputs, [str(each.message) for each in caught if each.category is RuntimeWarning]


def _without_a_driver():
    return _staged({"available": False, "reason": "no driver here"}, hip=None)


def _with_another_vendor():
    return _staged({"available": True, "reason": ""}, hip="6.2.41133")


@pytest.mark.parametrize(
    "ranks, reason",
    [(_without_a_driver, "no driver here"), (_with_another_vendor, "this PyTorch is for AMD's GPUs, which runjob cannot use")],
)
def test_tensors_that_the_library_cannot_take_are_staged_and_the_reason_is_given_once(call_ranks, ranks, reason):
    for rank, (outputs, told) in enumerate(call_ranks(ranks, 2)):
        assert outputs == [[2.0, 2.0]] * 3
        assert told == ([f"tensors on GPUs are copied to the CPU and back: {reason}"] if rank == 0 else [])


def test_memory_that_the_library_lends_is_not_marked_as_read_only():
    """torch.as_tensor() refuses that."""
    assert gpus._Lent(4096, 8).__cuda_array_interface__["data"] == (4096, False)
