"""Symmetric memory as a buffer. runjob_symmetric_alloc() of runjob.h defines symmetric memory."""

from __future__ import annotations

import ctypes
import weakref

from . import job
from ._library import library


def allocate(size: int) -> ctypes.Array[ctypes.c_ubyte]:
    """`size` bytes as a buffer whose memory is freed when no reference to it is left. Errors  NotInitializedError
    before init().
    """
    address = ctypes.c_void_p()
    job.check(library().runjob_symmetric_alloc(size, ctypes.byref(address)))
    buffer = (ctypes.c_ubyte * size).from_address(address.value or 0)
    # The memory is not freed at exit, where arrays may still be in use. It ends with the process.
    weakref.finalize(buffer, library().runjob_symmetric_free, address).atexit = False
    return buffer
