"""Writes and reads a commit as a file.

The layout is that of safetensors (github.com/huggingface/safetensors, "Format"), whose library opens the files as well:

    8 bytes  length of the header, unsigned, little-endian
    header   JSON: {name: {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}}, and blanks up to a multiple of 8 bytes
    data     the bytes of the arrays without gaps, those of larger elements first

The header's "__metadata__" has a text "runjob", JSON: the format's version, the values' names, and for each array, by
number, its name, kind, dtype and shape. An array of a dtype that safetensors does not have is stored as bytes (U8). The
last array, "runjob.objects", is a pickle of the plain objects, with Places for the arrays.
"""

from __future__ import annotations

import json
import os
import pickle
import struct
from collections.abc import Iterable, Sequence
from typing import Any, BinaryIO, NamedTuple

from ..objects import dumps
from . import tree
from .array_kinds import Form, UnknownKindError, kind_named

_VERSION = 1
_OBJECTS = "runjob.objects"
_LENGTH = struct.Struct("<Q")
_MOST_HEADER_BYTES = 100_000_000  # the library safetensors reads no longer headers

#: The names of dtypes in NumPy, and those in safetensors.
_SAFETENSORS = {
    "bool": "BOOL", "uint8": "U8", "int8": "I8", "uint16": "U16", "int16": "I16", "uint32": "U32", "int32": "I32", "uint64": "U64",
    "int64": "I64", "float16": "F16", "bfloat16": "BF16", "float32": "F32", "float64": "F64", "complex64": "C64",
}  # fmt: skip


class BrokenCommitError(ValueError):
    """The file does not contain a whole commit."""


class Header(NamedTuple):
    """The contents of a file. `names` are those of the values. `forms` and `offsets` are those of the arrays, by
    number; offsets are bytes from the start of the file.
    """

    names: list[str]
    forms: list[Form]
    offsets: list[int]
    objects: tuple[int, int]  # begin, end


def write(file: BinaryIO, outline: dict[str, Any], forms: Sequence[Form], arrays: Sequence[memoryview]) -> None:
    """Writes a commit from the start of the file. `arrays` has the bytes of each array, by number.

    Errors  OSError; those of pickle for an object that cannot be pickled.
    """
    objects = dumps(outline)
    names = _array_names(outline)
    dtypes = [kind_named(form.kind).dtype_name(form.dtype) for form in forms]
    order = sorted(range(len(forms)), key=lambda number: -_element_bytes(dtypes[number]))
    entries: dict[str, Any] = {}
    position = 0
    for number in order:
        form, known = forms[number], _SAFETENSORS.get(dtypes[number])
        shape = list(form.shape) if known else [form.nbytes]
        entries[names[number]] = {"dtype": known or "U8", "shape": shape, "data_offsets": [position, position + form.nbytes]}
        position += form.nbytes
    entries[_OBJECTS] = {"dtype": "U8", "shape": [len(objects)], "data_offsets": [position, position + len(objects)]}
    described = [[name, form.kind, dtype, list(form.shape)] for name, form, dtype in zip(names, forms, dtypes)]
    about = json.dumps({"version": _VERSION, "values": list(outline), "arrays": described})
    text = json.dumps({"__metadata__": {"runjob": about}, **entries}).encode()
    text += b" " * (-len(text) % 8)
    file.write(_LENGTH.pack(len(text)) + text)
    for number in order:
        file.write(arrays[number])
    file.write(objects)


def read_header(file: BinaryIO) -> Header:
    """Reads the header. Errors  BrokenCommitError; UnknownKindError; OSError."""
    try:
        size = os.fstat(file.fileno()).st_size
        if size < _LENGTH.size:
            raise BrokenCommitError(f"it has {size} bytes, too few for a commit")
        (length,) = _LENGTH.unpack(file.read(_LENGTH.size))
        if length > min(size, _MOST_HEADER_BYTES):
            raise BrokenCommitError("its header is longer than the file")
        entries = json.loads(file.read(length))
        about = json.loads(entries.pop("__metadata__")["runjob"])
        if about["version"] != _VERSION:
            raise BrokenCommitError(f"it has version {about['version']} of the format, and this runjob reads version {_VERSION}")
        start = _LENGTH.size + length
        places = {name: _place_of(entry["data_offsets"], start) for name, entry in entries.items()}
        end = max(end for _, end in places.values())
        if end != size:
            raise BrokenCommitError(f"it has {size} bytes, and its header describes {end}")
        forms, offsets = [], []
        for name, kind, dtype, shape in about["arrays"]:
            begin, end = places[name]
            forms.append(Form(kind, tuple(shape), kind_named(kind).dtype_named(dtype), end - begin))
            offsets.append(begin)
        begin, end = places[_OBJECTS]
        return Header(list(about["values"]), forms, offsets, (begin, end))
    except (BrokenCommitError, UnknownKindError, OSError):
        raise
    except Exception as error:  # the parsers of JSON and of dtypes may raise any exception for a malformed text
        raise BrokenCommitError(f"its header makes no sense: {type(error).__name__}: {error}") from error


def _place_of(offsets: Any, start: int) -> tuple[int, int]:
    """The offsets in the file at which an entry begins and ends. Errors  BrokenCommitError; other exceptions for a
    value that is not a list of two.
    """
    begin, end = offsets
    if type(begin) is not int or type(end) is not int or not 0 <= begin <= end:
        raise BrokenCommitError(f"its header makes no sense: {offsets!r} is no place in it")
    return start + begin, start + end


def read_objects(file: BinaryIO, header: Header) -> dict[str, Any]:
    """The plain objects. They are unpickled, so the caller must know that the file is this user's own.
    Errors  BrokenCommitError, OSError.
    """
    begin, end = header.objects
    file.seek(begin)
    try:
        outline = pickle.loads(file.read(end - begin))
    except Exception as error:  # a class of the program may raise any exception
        raise BrokenCommitError(f"its plain objects cannot be unpickled: {type(error).__name__}: {error}") from error
    if not isinstance(outline, dict) or len(tree.paths(outline)) != len(header.forms):
        raise BrokenCommitError("its plain objects do not belong to its arrays")
    return outline


def read_arrays(file: BinaryIO, header: Header, room: Iterable[memoryview]) -> None:
    """Reads the arrays. `room` has the memory for the bytes of each array, by number. Errors  BrokenCommitError, OSError."""
    for memory, offset in zip(room, header.offsets):  # this order exhausts `room`
        file.seek(offset)
        if file.readinto(memory) != len(memory):  # type: ignore[attr-defined]
            raise BrokenCommitError("it has become shorter")


def _element_bytes(dtype: str) -> int:
    """The bytes of an element. Arrays of large elements are written first, so that each array is aligned. Those that
    are stored as bytes are written last.
    """
    known = _SAFETENSORS.get(dtype)
    return 0 if known is None else int(known.lstrip("BFIUCOL") or 8) // 8


def _array_names(outline: dict[str, Any]) -> list[str]:
    """A name for each array, by number: "model.0.weight"."""
    names = [".".join(map(str, path)) for path in tree.paths(outline)]
    taken = {_OBJECTS, "__metadata__"}
    for number, name in enumerate(names):
        names[number] = name if name not in taken else f"{name}#{number}"
        taken.add(names[number])
    return names
