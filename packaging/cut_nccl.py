"""Cuts a libnccl.so.2 down to what one kind of GPU needs, so that it can travel: 252 MB become about 13.

    python3 packaging/cut_nccl.py LIBRARY ARCHITECTURE OUT.xz

ARCHITECTURE is a number such as 90 (H100, H200). The code for all others, and the section that only linking needs, are filled with zeros
in place, so that every address stays; then `strip` and xz. Prints what is left. Status 1 when there is no code for that architecture.

The code lies in the section .nv_fatbin: containers one after the other, each with a header and entries, each entry with a header and a body.
NVIDIA documents the magic number only (fatbinary_section.h); a wrong idea of the rest shows as no code at all, or as an architecture without.
"""

import lzma
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

_CONTAINER = struct.Struct("<IHHQ")  # magic, version, bytes of this header, bytes of the entries
_ENTRY = struct.Struct("<HHIQIIHHI")  # kind, version, bytes of this header, of the body, compressed, unknown, minor, major, architecture
_MAGIC = 0xBA55ED50


def sections(library):
    """name -> (offset, bytes) of a 64-bit ELF file."""
    place, entry_bytes, count, names_index = struct.unpack_from("<Q", library, 0x28) + struct.unpack_from("<HHH", library, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", library, place + i * entry_bytes) for i in range(count)]
    names = headers[names_index][4]
    return {library[names + each[0] : library.index(b"\0", names + each[0])].decode(): (each[4], each[5]) for each in headers}


def zero(library, first, count):
    library[first : first + count] = bytes(count)


def cut(library, architecture):
    """Fills the bodies of other architectures with zeros. Returns how many bodies and bytes are left."""
    kept = kept_bytes = 0
    found = sections(library)
    place, end = found[".nv_fatbin"][0], sum(found[".nv_fatbin"])
    while place + _CONTAINER.size <= end:
        magic, _, header_bytes, entries_bytes = _CONTAINER.unpack_from(library, place)
        if magic != _MAGIC:
            place += 8  # padding between containers
            continue
        entry, place = place + header_bytes, place + header_bytes + entries_bytes
        while entry + _ENTRY.size <= place:
            _, _, entry_header, body_bytes, *_, of = _ENTRY.unpack_from(library, entry)
            if of == architecture:
                kept, kept_bytes = kept + 1, kept_bytes + body_bytes
            else:
                zero(library, entry + entry_header, body_bytes)
            entry += entry_header + body_bytes
    if "__nv_relfatbin" in found:
        zero(library, *found["__nv_relfatbin"])
    return kept, kept_bytes


def main(source, architecture, out):
    library = bytearray(pathlib.Path(source).read_bytes())
    kept, kept_bytes = cut(library, int(architecture))
    if not kept:
        sys.exit(f"{source} has no code for architecture {architecture}")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "libnccl.so.2")
        path.write_bytes(library)
        subprocess.run(["strip", path], check=True)
        with path.open("rb") as stripped, lzma.open(out, "wb", preset=6) as packed:
            shutil.copyfileobj(stripped, packed)
    print(f"{kept} modules of {kept_bytes / 1e6:.1f} MB for architecture {architecture}; {pathlib.Path(out).stat().st_size / 1e6:.1f} MB packed")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
