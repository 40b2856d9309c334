"""python/runjob/_library.py: finding, opening and declaring librunjob."""

import ctypes
import re
import sys

import older_functions
import pytest
from ranks import ROOT

from runjob import _library, dtypes
from runjob.exceptions import Code

HEADER = (ROOT / "runtime" / "include" / "runjob" / "runjob.h").read_text()


def test_every_function_of_the_header_is_declared_with_as_many_arguments():
    declared = re.findall(r"RUNJOB_API\s+[\w\s*]*?\b(runjob_\w+)\((.*?)\);", HEADER, re.DOTALL)
    counts = {name: 0 if arguments.strip() == "void" else arguments.count(",") + 1 for name, arguments in declared}
    assert len(counts) > 20
    older = {name: len(arguments) for name, arguments in older_functions.declared().items()}
    assert counts == {name: len(arguments) for name, (_, arguments) in _library.PROTOTYPES.items()} | older


def test_codes_are_those_of_the_header():
    block = HEADER[HEADER.index("typedef enum runjob_code") : HEADER.index("} runjob_code")]
    values = {name: int(value) for name, value in re.findall(r"RUNJOB_(\w+) = (\d+)", block)}
    assert values == {code.name: code.value for code in Code}


@pytest.mark.parametrize("kind, values", [
    ("runjob_kind", {name.upper(): value for name, value in _library.KINDS.items()}),
    ("runjob_memory", {"HOST_MEMORY": _library.HOST_MEMORY, "GPU_MEMORY": _library.GPU_MEMORY}),
    ("runjob_dtype", {name.upper(): value for name, value in dtypes.NUMBERS.items()}),
])  # fmt: skip
def test_constants_are_those_of_the_header(kind, values):
    block = HEADER[HEADER.index(f"typedef enum {kind} {{") : HEADER.index(f"}} {kind};")]
    assert values == {name: int(value) for name, value in re.findall(r"RUNJOB_(\w+) = (\d+)", block)}


@pytest.mark.parametrize("name, struct", [("runjob_tensor", _library.Tensor), ("runjob_operation", _library.Operation)])
def test_structs_have_the_layout_that_is_recorded(name, struct):
    recorded = (ROOT / "tests/abi/recorded/values.txt").read_text().splitlines()
    own = {f"offsetof({name}, {field[0]}) = {getattr(struct, field[0]).offset}" for field in struct._fields_}
    assert own | {f"sizeof({name}) = {ctypes.sizeof(struct)}"} >= {line for line in recorded if re.search(rf"\({name}\b", line)}
    assert struct.layout().size == ctypes.sizeof(struct)


def test_calls_let_go_of_the_gil():
    assert isinstance(_library.library(), ctypes.CDLL)
    assert not isinstance(_library.library(), ctypes.PyDLL)


def test_the_library_is_of_the_version_of_the_package():
    import runjob

    assert _library.library().runjob_version().decode() == runjob.__version__


def test_a_wrong_override_names_the_variable_and_the_path(run_python):
    done = run_python("import runjob.basics; runjob.basics.init()", RUNJOB_LIBRARY="/nonexistent/librunjob.so")
    assert done.returncode == 1
    assert "ImportError: RUNJOB_LIBRARY names /nonexistent/librunjob.so, which is no file" in done.stderr


def test_a_file_that_is_no_library_is_named(run_python, tmp_path):
    broken = tmp_path / "librunjob.so"
    broken.write_text("not a library")
    done = run_python("import runjob.basics; runjob.basics.init()", RUNJOB_LIBRARY=str(broken))
    assert f"ImportError: {broken} could not be opened" in done.stderr


def test_another_library_is_refused_by_the_function_it_lacks(run_python):
    libc = next(line.split()[-1] for line in open("/proc/self/maps") if "libc.so" in line)
    done = run_python("import runjob.basics; runjob.basics.init()", RUNJOB_LIBRARY=libc)
    assert f"ImportError: {libc} has no runjob_version(): it is older than this Python package" in done.stderr


def test_without_any_library_every_place_is_listed(run_python):
    done = run_python(
        "from runjob import _library; _library._NAME = 'librunjob_absent.so'; _library.library()", RUNJOB_LIBRARY=""
    )
    assert "ImportError: librunjob_absent.so was not found (tried " in done.stderr
    assert f"{ROOT}/build/release/lib/librunjob_absent.so" in done.stderr
    assert f"{sys.prefix}/lib/librunjob_absent.so" in done.stderr
    assert "set RUNJOB_LIBRARY to its path" in done.stderr


def test_importing_runjob_needs_no_framework(run_python):
    done = run_python("import runjob, runjob.basics, runjob.backends, sys; print([m for m in ('torch', 'numpy') if m in sys.modules])")
    assert done.stdout == "[]\n", done.stderr
