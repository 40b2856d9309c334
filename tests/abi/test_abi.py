"""What programs in the field rely on: symbols, declarations, values and layouts of the C interface, its name and its version."""

import re

import pytest

import c_interface

VERSION = re.search(r"project\(runjob VERSION (\S+)", (c_interface.ROOT / "CMakeLists.txt").read_text()).group(1)


@pytest.fixture(autouse=True, scope="module")
def built():
    if not c_interface.LIBRARY.exists():
        pytest.fail(f"{c_interface.LIBRARY} is not built: cmake --preset release && cmake --build --preset release")


@pytest.mark.parametrize("part", c_interface.PARTS)
def test_what_is_recorded_is_still_there(part):
    gone = [line for line in c_interface.recorded(part) if line not in c_interface.PARTS[part]()]
    assert not gone, "programs that use these would break; runjob.h says that they stay"


@pytest.mark.parametrize("part", c_interface.PARTS)
def test_what_is_new_is_recorded(part):
    added = [line for line in c_interface.PARTS[part]() if line not in c_interface.recorded(part)]
    assert not added, "record it: python tests/abi/c_interface.py"


def test_every_declared_function_is_exported_and_nothing_else():
    declared = [re.search(r"\b(runjob_\w+)\(", each).group(1) for each in c_interface.declarations()]
    assert sorted(f"{name}@@RUNJOB_0" for name in declared) == c_interface.symbols()


def test_a_struct_has_kept_its_size():
    """Recorded by itself: a field that is added at the end changes nothing else."""
    assert "sizeof(runjob_tensor) = 40" in c_interface.values()


def test_the_library_has_the_name_that_programs_ask_for():
    listing = c_interface.output("readelf", "--dynamic", "--wide", c_interface.LIBRARY)
    assert re.findall(r"\(SONAME\).*\[(.+)\]", listing) == ["librunjob.so.0"]
    assert not re.search(r"\(NEEDED\).*(gloo|cuda|nccl|mpi|boost)", listing), "backends are opened on demand"


VERSIONS = r"""
#include <runjob/runjob.h>
#include <stdio.h>
int main(void) {
  printf("%s %d.%d.%d %d\n", runjob_version(), RUNJOB_VERSION_MAJOR, RUNJOB_VERSION_MINOR, RUNJOB_VERSION_PATCH, RUNJOB_VERSION);
  return 0;
}
"""


def test_header_and_library_have_the_version_of_the_project(tmp_path):
    (tmp_path / "version.c").write_text(VERSIONS)
    folder = c_interface.LIBRARY.parent
    c_interface.output(*c_interface.COMPILER, tmp_path / "version.c", "-o", tmp_path / "version", f"-L{folder}", f"-Wl,-rpath,{folder}", "-lrunjob")
    major, minor, patch = map(int, VERSION.split("."))
    assert c_interface.output(tmp_path / "version") == f"{VERSION} {VERSION} {major * 10000 + minor * 100 + patch}\n"


def test_a_program_that_knows_only_the_recorded_declarations_runs(tmp_path):
    """Built without the header of today, as one that was built when that was recorded."""
    types = "typedef int runjob_code, runjob_dtype, runjob_reduce_op, runjob_compression; typedef long long runjob_handle; typedef struct runjob_tensor runjob_tensor; typedef struct runjob_operation runjob_operation; typedef const char* (*runjob_exchange)(void*, const void*, size_t, void (*)(void*, int32_t, const void*, size_t), void*);"
    functions = "".join(f"{each};\n" for each in c_interface.recorded("declarations"))
    body = """
int main(void) {
  double value = 21;
  const int64_t shape[] = {1};
  runjob_handle handle = 0;
  if (runjob_init() != 0) return 1;
  if (runjob_allreduce_async("x", &value, &value, shape, 1, 8, 1, 2.0, 1.0, 0, &handle) != 0) return 2;
  if (runjob_wait(handle, -1.0) != 0) return 3;
  runjob_release(handle);
  return value == 42 && runjob_shutdown() == 0 ? 0 : 4;
}
"""
    (tmp_path / "old.c").write_text(f"#include <stddef.h>\n#include <stdint.h>\n{types}\n{functions}{body}")
    folder = c_interface.LIBRARY.parent
    c_interface.output("cc", tmp_path / "old.c", "-o", tmp_path / "old", f"-L{folder}", f"-Wl,-rpath,{folder}", "-lrunjob")
    c_interface.output(tmp_path / "old")
