"""The operations that runjob adds to TensorFlow: finds librunjob_tensorflow.so and lets TensorFlow open it.

Errors  ImportError if it is missing, and for a TensorFlow before 2.13, which cannot open it.
"""

from __future__ import annotations

import ctypes
import functools
import pathlib
from typing import Any

import tensorflow as tf

from .. import _library

_NAME = "librunjob_tensorflow.so"

#: All operations except those that exist for the order.
UNORDERED = frozenset(
    f"Horovod{name}"
    for name in (
        "Allreduce", "GroupedAllreduce", "Allgather", "GroupedAllgather", "Broadcast", "GroupedBroadcast", "Alltoall", "Reducescatter",
        "GroupedReducescatter", "Size", "ProcessSetIncluded", "Rank", "LocalSize", "LocalRank",
    )
)  # fmt: skip


def path() -> pathlib.Path:
    """The path of librunjob_tensorflow.so: in the folder `runjob` beside librunjob."""
    found = _library.find().parent / "runjob" / _NAME
    if not found.is_file():
        raise ImportError(f"{found} does not exist: runjob was built without its operations for TensorFlow; build it anew")
    return found


@functools.lru_cache(maxsize=None)
def operations() -> Any:
    """A module with a function for each operation, such as `horovod_allreduce` for HorovodAllreduce."""
    ctypes.CDLL(str(_library.find()), mode=ctypes.RTLD_GLOBAL)  # the operations call its functions
    try:
        module = tf.load_op_library(str(path()))
    except tf.errors.OpError as error:
        raise ImportError(f"TensorFlow {tf.__version__} could not open {path()}: {error.message}") from error
    if state() not in ("asynchronous", "synchronous"):
        raise ImportError(f"runjob.tensorflow needs TensorFlow 2.13 or newer, and this is {tf.__version__}: {state()}")
    _leave_unordered()
    return module


def _leave_unordered() -> None:
    """Excludes the operations from TensorFlow's ordering. TensorFlow's functions run operations with side effects one
    after the other, in the order of the program. runjob's operations must run, but in any order: each rank may have
    another order, and gradients are reduced together. TensorFlow has a list of such operations, and no public call to
    extend it.
    """
    from tensorflow.python.framework import auto_control_deps

    name = "MUST_RUN_ORDER_INSENSITIVE_STATEFUL_OPS"
    setattr(auto_control_deps, name, getattr(auto_control_deps, name, frozenset()) | UNORDERED)


def state() -> str:
    """Returns "asynchronous" if operations in flight hold no thread of TensorFlow. Returns "synchronous" if they do,
    because runjob does not know the callbacks of this TensorFlow, or because of RUNJOB_TENSORFLOW_SYNCHRONOUS=1.
    Otherwise returns the reason why there are no operations.
    """
    function = ctypes.CDLL(str(path())).runjob_tensorflow_state
    function.restype = ctypes.c_char_p
    return function().decode()  # type: ignore[no-any-return]
