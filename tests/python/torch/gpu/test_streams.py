"""Who keeps the tensors of operations on a GPU, over the stand-ins: three streams, and memory that is given out again as soon as it is
freed, as PyTorch's allocator does. The tensors lie where the processor cannot touch them.
"""

import ctypes
import gc
import os
import weakref
from ctypes import byref, c_double, c_size_t, c_ulonglong, c_void_p

import pytest
import torch

import runjob.torch as hvd
import stand_in_gpu
from runjob import handles
from runjob.torch import gpu_calls, gpus
from runjob.torch.tensors import Tensors

pytestmark = pytest.mark.skipif(not stand_in_gpu.is_built(), reason="the stand-ins of CUDA and NCCL are not built")

COUNT, TURNS = 4096, 25


class ThreeStreams:
    """A GPU whose current stream is one of three, with tensors in its memory."""

    def __init__(self):
        os.environ["RUNJOB_STAND_IN_DELAY_US"] = "2000"
        self._gpu = stand_in_gpu.install(lambda value: isinstance(value, torch.Tensor) and value.dtype == torch.float64, False)
        self._driver = self._gpu.driver
        self._driver.cuCtxPushCurrent_v2(self._gpu._context)
        self.streams = []
        for _ in range(3):
            stream = c_void_p()
            assert self._driver.cuStreamCreateWithPriority(byref(stream), 1, 0) == 0
            self.streams.append(stream)
        self.current = 0
        self.used = set()  # addresses
        self._sources = []
        gpus.place_of = lambda tensor: gpus.Place(0, self.streams[self.current].value)
        Tensors.empty_like = lambda _, array: self.empty()

    def empty(self):
        address = c_ulonglong()
        assert self._driver.cuMemAlloc_v2(byref(address), c_size_t(8 * COUNT)) == 0
        memory = (c_double * COUNT).from_address(address.value)
        self.used.add(address.value)
        weakref.finalize(memory, self._free, address.value)
        return torch.frombuffer(memory, dtype=torch.float64)

    def _free(self, address):
        self.used.remove(address)
        assert self._driver.cuMemFree_v2(c_ulonglong(address)) == 0

    def fill(self, tensor, value):
        """On the current stream."""
        source = (c_double * COUNT)(*[value] * COUNT)
        self._sources.append(source)
        self._driver.cuMemcpyHtoDAsync_v2(
            c_ulonglong(tensor.data_ptr()), source, c_size_t(8 * COUNT), self.streams[self.current]
        )

    def values(self, tensor):
        """After the work of the current stream."""
        found = (c_double * COUNT)()
        self._driver.cuMemcpyDtoHAsync_v2(
            found, c_ulonglong(tensor.data_ptr()), c_size_t(8 * COUNT), self.streams[self.current]
        )
        self._driver.cuStreamSynchronize(self.streams[self.current])
        return set(found)

    def synchronize(self):
        for stream in self.streams:
            self._driver.cuStreamSynchronize(stream)


def _nobody_waits(in_place):
    """Rank 0 waits for none of its operations, and writes to all memory that is free while they are in flight."""
    gpu = ThreeStreams()
    hvd.init()
    start = hvd.allreduce_async_ if in_place else hvd.allreduce_async
    wrong, most = [], 0
    for turn in range(TURNS):
        gpu.current = 0
        tensor = gpu.empty()
        gpu.fill(tensor, float(hvd.rank() + turn))
        handle = start(tensor, op=hvd.Sum)
        del tensor
        if hvd.rank() == 1:
            gpu.current = 1
            found = gpu.values(hvd.synchronize(handle))
            if found != {2.0 * turn + 1}:
                wrong.append((turn, found))
        del handle
        gpu_calls.kept()  # a later call, which frees what is done
        most = max(most, len(gpu.used))
        gpu.current = 2
        others = [gpu.empty() for _ in range(4)]
        for other in others:
            gpu.fill(other, -1.0)
        gpu.synchronize()
        del others, other
        if turn % 4 == 0:
            hvd.check()  # otherwise rank 0 may be far ahead
    hvd.check()
    kept, in_flight = gpu_calls.kept(), len(handles.in_flight())
    gc.collect()
    used = len(gpu.used)
    hvd.shutdown()
    return wrong, kept, in_flight, used, most


@pytest.mark.parametrize("in_place", [True, False])
def test_an_operation_that_nobody_waits_for_frees_its_tensors_when_the_gpu_is_done_over_the_stand_ins(call_ranks, in_place):
    for wrong, kept, in_flight, used, most in call_ranks(_nobody_waits, 2, in_place):
        assert wrong == []
        assert (kept, in_flight, used) == (0, 0, 0)
        assert most < TURNS, "memory is freed with later calls, not only at the end"


def _a_handle_that_is_kept():
    gpu = ThreeStreams()
    hvd.init()
    tensor = gpu.empty()
    gpu.fill(tensor, 1.0)
    handle = hvd.allreduce_async(tensor, op=hvd.Sum)
    del tensor
    hvd.check()
    kept = gpu_calls.kept()
    result = hvd.synchronize(handle)
    found = gpu.values(result), type(handle + 0), handle == int(handle), hvd.synchronize(handle)
    hvd.shutdown()
    return kept, found


def test_a_handle_that_is_kept_has_its_result_however_late_it_is_asked_for_over_the_stand_ins(call_ranks):
    for kept, found in call_ranks(_a_handle_that_is_kept, 2):
        assert (kept, found) == (0, ({2.0}, int, True, None))


def _a_result_that_pytorch_reads():
    """PyTorch converts the library's int32 values to int16 on the stream that waits."""
    stand_in_gpu.install(waits_on_host=False)
    done = [False]

    class Event:
        def query(self):
            return done[0]

    gpus.event = lambda tensor: Event()
    hvd.init()
    hvd.allreduce(torch.ones(3, dtype=torch.int16), op=hvd.Sum)
    hvd.check()
    before = gpu_calls.kept()
    done[0] = True
    after = gpu_calls.kept()
    hvd.shutdown()
    return before, after


def test_what_pytorch_reads_of_a_result_is_kept_until_its_stream_has_done_that_over_the_stand_ins(call_ranks):
    assert call_ranks(_a_result_that_pytorch_reads, 2) == [(1, 0)] * 2
