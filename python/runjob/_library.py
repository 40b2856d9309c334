"""Finds librunjob, opens it, and declares its C interface, as runtime/include/runjob/runjob.h does, in one table. Of the
functions that run an operation these are the two that take any operation as a struct.

Threads  any may call library(). Calls go through ctypes.CDLL, which releases the GIL during a call.
Errors   ImportError when there is no librunjob or when it cannot be opened, with the places that were tried.
"""

from __future__ import annotations

import ctypes
import functools
import os
import pathlib
import struct
import sys
from ctypes import CFUNCTYPE, POINTER, c_char_p, c_double, c_int, c_int32, c_int64, c_size_t, c_void_p
from typing import Any

_NAME = "librunjob.so"
_OVERRIDE = "RUNJOB_LIBRARY"

_SHAPE = POINTER(c_int64)
_HANDLE = POINTER(c_int64)
_NUMBERS = POINTER(c_int32)


class _Struct(ctypes.Structure):
    """A struct of the C interface. Pointers are addresses: what they point to must be kept by the caller."""

    @classmethod
    def layout(cls) -> struct.Struct:
        """The fields in the terms of `struct`, which sets all of them at once, faster than ctypes sets one after the other."""
        codes = {c_int32: "i", c_int64: "q", c_size_t: "N", c_double: "d", c_void_p: "P", c_char_p: "P"}
        return struct.Struct("@" + "".join(codes[kind] for _, kind, *_ in cls._fields_))


class Tensor(_Struct):
    """runjob_tensor: one tensor of an operation. `extents` keeps the array at `shape`, if its owner has set it."""

    extents: Any = None
    _fields_ = [
        ("input", c_void_p),
        ("output", c_void_p),
        ("output_bytes", c_int64),
        ("shape", c_void_p),
        ("ndim", c_int32),
        ("dtype", c_int32),
    ]


class Operation(_Struct):
    """runjob_operation: one operation with all fields that it may need."""

    _fields_ = [
        ("size", c_size_t),
        ("name", c_char_p),
        ("kind", c_int32),
        ("count", c_int32),
        ("tensors", c_void_p),
        ("is_group", c_int32),
        ("op", c_int32),
        ("prescale", c_double),
        ("postscale", c_double),
        ("compression", c_int32),
        ("root", c_int32),
        ("process_set", c_int32),
        ("nsplits", c_int32),
        ("splits", c_void_p),
        ("memory", c_int32),
        ("device", c_int32),
        ("stream", c_void_p),
    ]


set_tensor = Tensor.layout().pack_into
set_operation = Operation.layout().pack_into

#: What runjob_exchange calls for each rank's blob: to, rank, blob, bytes.
_Receive = CFUNCTYPE(None, c_void_p, c_int32, c_char_p, c_size_t)
#: runjob_exchange: context, blob, bytes, receive, to; NULL or the address of a text.
Exchange = CFUNCTYPE(c_void_p, c_void_p, c_void_p, c_size_t, _Receive, c_void_p)

#: runjob_kind, by the names of the operations.
KINDS = {"allreduce": 0, "allgather": 1, "broadcast": 2, "join": 3, "alltoall": 5, "barrier": 6, "reducescatter": 7}
#: runjob_memory.
HOST_MEMORY, GPU_MEMORY = 0, 1

#: name -> (result, arguments)
PROTOTYPES: dict[str, tuple[Any, list[Any]]] = {
    "runjob_version": (c_char_p, []),
    "runjob_error_message": (c_char_p, []),
    "runjob_init": (c_int, []),
    # ranks, sizes, the number of sets, dynamic
    "runjob_init_with_process_sets": (c_int, [_NUMBERS, _NUMBERS, c_int32, c_int32]),
    # rank, size, exchange, its context, then as above
    "runjob_init_with_exchange": (c_int, [c_int32, c_int32, Exchange, c_void_p, _NUMBERS, _NUMBERS, c_int32, c_int32]),
    "runjob_shutdown": (c_int, []),
    "runjob_shutdown_at_exit": (c_int, []),
    "runjob_is_initialized": (c_int, []),
    "runjob_failing": (c_int, [c_char_p]),
    # file, whether to mark cycles, whether all ranks record
    "runjob_start_timeline": (c_int, [c_char_p, c_int, c_int]),
    "runjob_stop_timeline": (c_int, []),
    # operation, names, tensors, the time since which each waits, their number, process set
    "runjob_timeline_tensors": (c_int, [c_char_p, POINTER(c_char_p), POINTER(Tensor), POINTER(c_int64), c_int32, c_int32]),
    "runjob_timeline_records_tensors": (c_int, []),
    "runjob_elastic": (c_int, []),
    "runjob_generation": (c_int, []),
    "runjob_elastic_enter": (c_int, []),
    # commit, reason
    "runjob_elastic_meet": (c_int, [c_int64, c_char_p]),
    # steps begun since the commit
    "runjob_elastic_steps": (c_int, [c_int64]),
    # update, whether to leave
    "runjob_elastic_pending": (c_int, [_NUMBERS, _NUMBERS]),
    # the operation, a struct that names its size; its handle
    "runjob_submit": (c_int, [POINTER(Operation), _HANDLE]),
    # the same, with seconds before the handle
    "runjob_run": (c_int, [POINTER(Operation), c_double, _HANDLE]),
    # handle, the caller's stream, timeout
    "runjob_check": (c_int, [c_double]),
    "runjob_wait_on_stream": (c_int, [c_int64, c_void_p, c_double]),
    # room, one for each rank
    "runjob_elastic_commits": (c_int, [POINTER(c_int64)]),
    # blocks, the bytes of each, their number, whether this rank lacks them
    "runjob_elastic_transfer": (c_int, [POINTER(c_void_p), POINTER(c_int64), c_int32, c_int32]),
    "runjob_rank": (c_int, []),
    "runjob_size": (c_int, []),
    "runjob_local_rank": (c_int, []),
    "runjob_local_size": (c_int, []),
    "runjob_cross_rank": (c_int, []),
    "runjob_cross_size": (c_int, []),
    "runjob_is_homogeneous": (c_int, []),
    # ranks, their number, the set's number
    "runjob_process_set_add": (c_int, [_NUMBERS, c_int32, _NUMBERS]),
    # ranks, their number, exchange, its context, the set's number
    "runjob_process_set_add_members": (c_int, [_NUMBERS, c_int32, Exchange, c_void_p, _NUMBERS]),
    "runjob_process_set_remove": (c_int, [c_int32]),
    "runjob_process_set_size": (c_int, [c_int32]),
    "runjob_process_set_rank": (c_int, [c_int32]),
    # room, its length, the number of sets
    "runjob_process_set_ids": (c_int, [_NUMBERS, c_int32, _NUMBERS]),
    "runjob_process_set_ranks": (c_int, [c_int32, _NUMBERS, c_int32, _NUMBERS]),
    "runjob_poll": (c_int, [c_int64]),
    "runjob_wait": (c_int, [c_int64, c_double]),
    # handle, the function to call, its argument
    "runjob_on_done": (c_int, [c_int64, CFUNCTYPE(None, c_void_p), c_void_p]),
    # handle, data, shape, ndim
    "runjob_output": (c_int, [c_int64, POINTER(c_void_p), POINTER(_SHAPE), POINTER(c_int32)]),
    # handle, the tensor's index, data, shape, ndim
    "runjob_grouped_output": (c_int, [c_int64, c_int32, POINTER(c_void_p), POINTER(_SHAPE), POINTER(c_int32)]),
    # handle, splits, nsplits
    "runjob_received_splits": (c_int, [c_int64, POINTER(_SHAPE), POINTER(c_int32)]),
    # buffer, its bytes, peer, tag, process set, the handle as a result
    "runjob_send_async": (c_int, [c_void_p, c_int64, c_int32, c_int64, c_int32, _HANDLE]),
    "runjob_recv_async": (c_int, [c_void_p, c_int64, c_int32, c_int64, c_int32, _HANDLE]),
    # handle, peer, bytes
    "runjob_received_from": (c_int, [c_int64, _NUMBERS, POINTER(c_int64)]),
    "runjob_release": (None, [c_int64]),
    # bytes, the address as a result
    "runjob_symmetric_alloc": (c_int, [c_size_t, POINTER(c_void_p)]),
    "runjob_symmetric_free": (c_int, [c_void_p]),
    "runjob_backends_json": (c_char_p, []),
    "runjob_statistics_json": (c_char_p, []),
    # name, process set, the number as a result
    "runjob_object_number": (c_int, [c_char_p, c_int32, POINTER(c_int64)]),
    # name, process set, sender, number, object, its bytes, the proof as a result
    "runjob_object_proof": (c_int, [c_char_p, c_int32, c_int32, c_int64, c_void_p, c_size_t, c_void_p]),
}


def candidates() -> list[pathlib.Path]:
    """The places where librunjob may be, the best first: the source tree's release build, then the folder `lib` of
    pip's installation.
    """
    package = pathlib.Path(__file__).resolve().parent
    folders = [
        package.parents[1] / "build" / "release" / "lib",
        package.parents[2],  # PREFIX/lib/python3.X/site-packages/runjob -> PREFIX/lib: an environment, --user, Debian's
        package.parent / "lib",  # pip install --target
        pathlib.Path(sys.prefix) / "lib",
    ]
    return [folder / _NAME for folder in folders]


def find() -> pathlib.Path:
    """The librunjob to open: $RUNJOB_LIBRARY, else the first candidate that exists."""
    override = os.environ.get(_OVERRIDE)
    if override:
        if not os.path.isfile(override):
            raise ImportError(f"{_OVERRIDE} names {override}, which is no file; unset it or name a {_NAME}")
        return pathlib.Path(override)
    for path in candidates():
        if path.is_file():
            return path
    tried = ", ".join(str(path) for path in candidates())
    raise ImportError(f"{_NAME} was not found (tried {tried}); install runjob-launcher, or set {_OVERRIDE} to its path")


@functools.lru_cache(maxsize=None)
def library() -> ctypes.CDLL:
    """librunjob, opened once and with every function declared."""
    path = find()
    try:
        opened = ctypes.CDLL(str(path))
    except OSError as error:
        raise ImportError(f"{path} could not be opened: {error}") from error
    for name, (result, arguments) in PROTOTYPES.items():
        try:
            function = getattr(opened, name)
        except AttributeError:
            raise ImportError(f"{path} has no {name}(): it is older than this Python package; build both anew") from None
        function.restype = result
        function.argtypes = arguments
    return opened
