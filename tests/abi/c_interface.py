"""The C interface as programs were built against it, recorded in the folder `recorded`, and as it is now.

    python tests/abi/c_interface.py        records what there is now, after functions or values were added

What is recorded may only grow: runjob.h says what programs rely on.
"""

import os
import pathlib
import re
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("RUNJOB_BUILD", ROOT / "build/release"))
LIBRARY = BUILD / "lib/librunjob.so"
INCLUDE = ROOT / "runtime/include"
HEADER = INCLUDE / "runjob/runjob.h"
RECORDED = pathlib.Path(__file__).parent / "recorded"
COMPILER = [os.environ.get("CC", "cc"), "-std=c11", "-pedantic", "-Wall", "-Wextra", "-Werror", f"-I{INCLUDE}"]


def output(*command):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True).stdout


def symbols():
    """What the library exports, with the version that a program asks for: `runjob_init@@RUNJOB_0`."""
    lines = output("nm", "-D", "--defined-only", "--with-symbol-versions", LIBRARY).splitlines()
    found = [line.split()[1:] for line in lines]
    return sorted(name for kind, name in found if kind != "A")  # A: the versions themselves


def preprocessed():
    return " ".join(output(*COMPILER, "-E", "-P", "-x", "c", HEADER).split())


def declarations():
    """The functions of runjob.h, one a line."""
    return sorted(re.findall(r'__attribute__\(\(visibility\("default"\)\)\) ([^;]+);', preprocessed()))


def probe_program():
    """Prints the values of all constants and the layout of all types of runjob.h."""
    text = preprocessed()
    enums = re.findall(r"typedef enum (\w+) \{(.*?)\}", text)
    structs = re.findall(r"typedef struct (\w+) \{(.*?)\}", text)
    constants = [name for _, body in enums for name in re.findall(r"\bRUNJOB_\w+", body)]
    lines = [f'printf("{name} = %d\\n", (int){name});' for name in constants]
    for name in [name for name, _ in enums] + ["runjob_handle"]:
        lines.append(f'printf("sizeof({name}) = %zu\\n", sizeof({name}));')
    for name, body in structs:
        lines.append(f'printf("sizeof({name}) = %zu\\n", sizeof({name}));')
        for field in re.findall(r"(\w+);", body):
            lines.append(f'printf("offsetof({name}, {field}) = %zu\\n", offsetof({name}, {field}));')
    body = "\n  ".join(lines)
    return f"#include <runjob/runjob.h>\n#include <stdio.h>\n\nint main(void) {{\n  {body}\n  return 0;\n}}\n"


def values():
    """Constants, sizes and offsets, one a line, as a C11 compiler sees them."""
    with tempfile.TemporaryDirectory() as folder:
        source, program = pathlib.Path(folder, "probe.c"), pathlib.Path(folder, "probe")
        source.write_text(probe_program())
        output(*COMPILER, source, "-o", program)
        return output(program).splitlines()


PARTS = {"symbols": symbols, "declarations": declarations, "values": values}


def recorded(part):
    return (RECORDED / f"{part}.txt").read_text().splitlines()


if __name__ == "__main__":
    RECORDED.mkdir(exist_ok=True)
    for name, part in PARTS.items():
        (RECORDED / f"{name}.txt").write_text("\n".join(part()) + "\n")
