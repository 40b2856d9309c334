"""Arrays in a GPU's memory, with nothing but CUDA's driver and NumPy, so that a check needs no framework."""

import ctypes
from ctypes import POINTER, byref, c_char_p, c_int, c_int64, c_size_t, c_uint, c_ulonglong, c_void_p

import numpy

from runjob import job
from runjob._library import GPU_MEMORY, KINDS, Operation, Tensor, library
from runjob.dtypes import NUMBERS

_FUNCTIONS = {
    "cuInit": [c_uint],
    "cuDeviceGetCount": [POINTER(c_int)],
    "cuDeviceGet": [POINTER(c_int), c_int],
    "cuDeviceGetName": [c_char_p, c_int, c_int],
    "cuDevicePrimaryCtxRetain": [POINTER(c_void_p), c_int],
    "cuCtxPushCurrent_v2": [c_void_p],
    "cuStreamCreateWithPriority": [POINTER(c_void_p), c_uint, c_int],
    "cuStreamSynchronize": [c_void_p],
    "cuMemAlloc_v2": [POINTER(c_ulonglong), c_size_t],
    "cuMemFree_v2": [c_ulonglong],
    "cuMemHostAlloc": [POINTER(c_void_p), c_size_t, c_uint],
    "cuMemFreeHost": [c_void_p],
    "cuMemsetD8Async": [c_ulonglong, ctypes.c_ubyte, c_size_t, c_void_p],
    "cuMemcpyDtoHAsync_v2": [c_void_p, c_ulonglong, c_size_t, c_void_p],
    "cuMemcpyHtoDAsync_v2": [c_ulonglong, c_void_p, c_size_t, c_void_p],
    "cuMemcpyDtoDAsync_v2": [c_ulonglong, c_ulonglong, c_size_t, c_void_p],
}
_POISON = 0xA5


class Gpu:
    """One GPU in its primary context, with a stream of its own. For the thread that makes it."""

    def __init__(self, ordinal):
        self._driver = ctypes.CDLL("libcuda.so.1")
        for name, arguments in _FUNCTIONS.items():
            getattr(self._driver, name).argtypes = arguments
        self.call("cuInit", 0)
        count, device, context, stream = c_int(), c_int(), c_void_p(), c_void_p()
        self.call("cuDeviceGetCount", byref(count))
        self.ordinal = ordinal % count.value
        self.call("cuDeviceGet", byref(device), self.ordinal)
        name = ctypes.create_string_buffer(128)
        self.call("cuDeviceGetName", name, len(name), device)
        self.name = name.value.decode()
        self.call("cuDevicePrimaryCtxRetain", byref(context), device)
        self.call("cuCtxPushCurrent_v2", context)
        self.call("cuStreamCreateWithPriority", byref(stream), 1, 0)
        self.stream = stream.value

    def call(self, name, *arguments):
        result = getattr(self._driver, name)(*arguments)
        if result != 0:
            raise RuntimeError(f"{name}(): CUDA's error {result}")

    def synchronize(self):
        self.call("cuStreamSynchronize", self.stream)

    def read(self, address, shape, dtype):
        """An array of the host with the values at an address, after the work that is in the stream."""
        values = numpy.empty(shape, dtype)
        if values.nbytes:
            self.call("cuMemcpyDtoHAsync_v2", values.ctypes.data, address, values.nbytes, self.stream)
        self.synchronize()
        return values


class GpuArray:
    """Values in a GPU's memory: those of `values`, or poison when `is_filled` is false."""

    def __init__(self, gpu, values, is_filled=True):
        self.gpu, self.shape, self.dtype, self.nbytes = gpu, values.shape, values.dtype, values.nbytes
        self._host = numpy.ascontiguousarray(values)
        address = c_ulonglong()
        gpu.call("cuMemAlloc_v2", byref(address), max(1, values.nbytes))
        self.address = address.value
        if not values.nbytes:
            return
        if is_filled:
            gpu.call("cuMemcpyHtoDAsync_v2", self.address, self._host.ctypes.data, self.nbytes, gpu.stream)
        else:
            gpu.call("cuMemsetD8Async", self.address, _POISON, self.nbytes, gpu.stream)

    def values(self):
        return self.gpu.read(self.address, self.shape, self.dtype)

    def free(self):
        self.gpu.synchronize()
        self.gpu.call("cuMemFree_v2", self.address)


def described(given, room, dtype):
    """A runjob_tensor: `given` is read, and the result goes to `room`, which may be None."""
    shape = (c_int64 * len(given.shape))(*given.shape)
    output, output_bytes = (room.address, room.nbytes) if room is not None else (None, 0)
    tensor = Tensor(given.address, output, output_bytes, ctypes.addressof(shape), len(given.shape), NUMBERS[dtype])
    tensor.lent = shape
    return tensor


def submit(gpu, name, kind, tensors, **fields):
    """Submits an operation on the GPU's stream; returns its handle."""
    listed = (Tensor * len(tensors))(*tensors)
    fields = {"op": 1, "prescale": 1, "postscale": 1, **fields}
    operation = Operation(
        size=ctypes.sizeof(Operation), name=name.encode(), kind=KINDS[kind], count=len(tensors), tensors=ctypes.addressof(listed),
        memory=GPU_MEMORY, device=gpu.ordinal, stream=gpu.stream, **fields,
    )  # fmt: skip
    handle = c_int64()
    job.check(library().runjob_submit(byref(operation), byref(handle)))
    return handle.value


def finish(gpu, handle):
    """Makes the GPU's stream wait for the operation; no thread waits for the GPU."""
    code = library().runjob_wait_on_stream(handle, gpu.stream, -1)
    job.check(code)


def result_of(gpu, handle, dtype):
    """The result of an operation whose extents nobody knew."""
    data, shape, ndim = c_void_p(), POINTER(c_int64)(), ctypes.c_int32()
    job.check(library().runjob_output(handle, byref(data), byref(shape), byref(ndim)))
    return gpu.read(data.value, tuple(shape[: ndim.value]), dtype)
