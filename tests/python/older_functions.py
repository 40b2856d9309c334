"""librunjob with the functions of its C interface that describe one kind of operation each, for tests of the library itself. The
bindings use the two functions that take any operation.
"""

import ctypes
from ctypes import POINTER, c_char_p, c_double, c_int, c_int32, c_int64, c_void_p

from runjob import _library

_SHAPE, _HANDLE = POINTER(c_int64), POINTER(c_int64)
_REDUCTION = [c_int, c_double, c_double]
_ROOM = [c_void_p, c_void_p, c_int64, _SHAPE, c_int32]
_GROUP = [POINTER(_library.Tensor), c_int32]
#: For each kind, the arguments between the name and those in which its two functions differ.
FUNCTIONS = {
    "allreduce": [c_void_p, c_void_p, _SHAPE, c_int32, c_int, *_REDUCTION, c_int32],
    "compressed_allreduce": [c_void_p, c_void_p, _SHAPE, c_int32, c_int, *_REDUCTION, c_int, c_int32],
    "broadcast": [c_void_p, _SHAPE, c_int32, c_int, c_int32, c_int32],
    "allgather": [*_ROOM, c_int, c_int32],
    "alltoall": [*_ROOM, _SHAPE, c_int32, c_int, c_int32],
    "reducescatter": [*_ROOM, c_int, *_REDUCTION, c_int32],
    "barrier": [c_int32],
    "grouped_allreduce": [*_GROUP, *_REDUCTION, c_int, c_int32],
    "grouped_allgather": [*_GROUP, c_int32],
    "grouped_broadcast": [*_GROUP, c_int32, c_int32],
    "grouped_reducescatter": [*_GROUP, *_REDUCTION, c_int32],
}


def declared():
    """The arguments of each function."""
    found = {"runjob_join_async": [_HANDLE], "runjob_join": [c_double, _HANDLE]}
    for name, arguments in FUNCTIONS.items():
        found[f"runjob_{name}_async"] = [c_char_p, *arguments, _HANDLE]
        found[f"runjob_{name}"] = [c_char_p, *arguments, c_double, _HANDLE]
    return found


def library():
    opened = ctypes.CDLL(str(_library.find()))
    for name, (result, arguments) in _library.PROTOTYPES.items():
        getattr(opened, name).restype, getattr(opened, name).argtypes = result, arguments
    for name, arguments in declared().items():
        getattr(opened, name).argtypes = arguments
    return opened
