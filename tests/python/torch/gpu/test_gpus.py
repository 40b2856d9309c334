"""python/runjob/torch/gpus.py where there is no GPU. What needs one is in packaging/gpu_check/torch_operations.py."""

import warnings

import torch

import runjob.torch as hvd
from runjob.torch import gpus


def test_tensors_of_the_cpu_and_without_values_are_not_on_a_gpu():
    assert not gpus.is_on_gpu(torch.ones(2))
    assert not gpus.is_on_gpu(torch.ones(2, device="meta"))
    assert not gpus.is_on_gpu([1.0])


def _without_a_driver():
    hvd.init()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        gpus.is_on_gpu = lambda value: isinstance(value, torch.Tensor) and value.dtype == torch.float64
        gpus._is_known = False
        backends = gpus.backends
        gpus.backends = lambda: {"cuda": {"available": False, "reason": "no driver here"}}
        outputs = [hvd.allreduce(torch.ones(2, dtype=torch.float64), op=hvd.Sum).tolist() for _ in range(3)]
        gpus.backends, gpus._is_known = backends, False
    hvd.shutdown()
    return outputs, [str(each.message) for each in caught if each.category is RuntimeWarning]


def test_without_a_driver_tensors_are_staged_and_the_reason_is_given_once(call_ranks):
    for rank, (outputs, told) in enumerate(call_ranks(_without_a_driver, 2)):
        assert outputs == [[2.0, 2.0]] * 3
        assert told == (["tensors on GPUs are copied to the CPU and back: no driver here"] if rank == 0 else [])
