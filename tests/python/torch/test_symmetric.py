"""python/runjob/torch/symmetric.py: tensors in symmetric memory, their results and their life."""

import gc
import os
import pickle

import pytest
import torch

import runjob.torch as hvd
from runjob._library import library
from runjob.torch.tensors import DTYPES


def _mapped_bytes():
    """Of shared memory that this process may access, without the slots that are there anyway."""
    total = 0
    with open("/proc/self/maps", encoding="utf-8") as maps:
        for line in maps:
            if "/memfd:runjob" in line and " rw-s " in line:
                first, last = (int(text, 16) for text in line.split()[0].split("-"))
                total += last - first
    return total


def _sums(count):
    hvd.init()
    results = []
    for dtype in DTYPES:
        tensor = hvd.empty_symmetric(count, dtype=dtype)
        tensor.fill_(1)
        hvd.allreduce_(tensor, op=hvd.Sum, name=str(dtype))
        results.append(bool((tensor == (1 if dtype == torch.bool else hvd.size())).all()))
    return results


@pytest.mark.parametrize("np", [1, 2, 3])
def test_every_dtype_is_summed_in_place(call_ranks, np):
    assert call_ranks(_sums, np, 100003) == [[True] * len(DTYPES)] * np


def _views():
    hvd.init()
    tensor = hvd.empty_symmetric(300, 1000)
    tensor.zero_()
    before = _mapped_bytes()
    part = tensor[100:200]
    part += hvd.rank() + 1
    del tensor
    gc.collect()
    hvd.allreduce_(part, op=hvd.Sum, name="part")
    seen = (part.shape, part.unique().tolist(), before > 0)
    del part
    gc.collect()
    address = hvd.empty_symmetric(300, 1000).data_ptr()
    return (*seen, hvd.empty_symmetric(300, 1000).data_ptr() == address)


def test_the_memory_goes_with_the_last_view(call_ranks):
    assert call_ranks(_views, 2) == [((100, 1000), [3.0], True, True)] * 2


def _life():
    hvd.init()
    tensor = hvd.empty_symmetric(100000)
    tensor.fill_(1)
    hvd.allreduce_(tensor, op=hvd.Sum, name="a")
    hvd.shutdown()
    after = tensor.sum().item()
    hvd.init()
    hvd.allreduce_(tensor, op=hvd.Sum, name="b")
    copy = pickle.loads(pickle.dumps(tensor))
    hvd.shutdown()
    mapped = _mapped_bytes() > 0
    pid = os.fork()
    if pid == 0:
        del tensor  # not the child's to free
        os._exit(library().runjob_is_initialized())
    _, status = os.waitpid(pid, 0)
    kept = tensor.sum().item()
    del tensor
    gc.collect()
    return after, copy.sum().item(), mapped, status, kept, _mapped_bytes()


def test_it_outlives_the_job_and_a_forked_child(call_ranks):
    assert call_ranks(_life, 2) == [(200000.0, 400000.0, True, 0, 400000.0, 0)] * 2


def _at_exit():
    hvd.init()
    tensor = hvd.empty_symmetric(100000)
    globals()["kept_until_the_end"] = tensor
    hvd.shutdown()
    return True


def test_a_tensor_that_is_never_freed_does_no_harm(run_ranks):
    assert run_ranks(_at_exit, 2).results == [True, True]


def _shapes():
    hvd.init()
    made = [hvd.empty_symmetric(), hvd.empty_symmetric(0, 3), hvd.empty_symmetric((2, 3)), hvd.empty_symmetric([4], dtype=torch.int64)]
    leaf = hvd.empty_symmetric(2, requires_grad=True)
    with pytest.raises(ValueError, match="does not take torch.complex64"):
        hvd.empty_symmetric(1, dtype=torch.complex64)
    with pytest.raises(ValueError, match="negative extent"):
        hvd.empty_symmetric(2, -1)
    return [(tuple(tensor.shape), tensor.dtype) for tensor in made], leaf.is_leaf and leaf.requires_grad


def test_shapes_and_dtypes_are_those_of_torch_empty(call_ranks):
    expected = [((), torch.float32), ((0, 3), torch.float32), ((2, 3), torch.float32), ((4,), torch.int64)]
    assert call_ranks(_shapes, 1) == [(expected, True)]


def _without_job():
    try:
        hvd.empty_symmetric(1)
    except Exception as error:
        return type(error).__name__, str(error)
    return None


def test_there_is_none_before_init(call_ranks):
    name, message = call_ranks(_without_job, 1)[0]
    assert name == "NotInitializedError"
    assert "call init() first" in message
