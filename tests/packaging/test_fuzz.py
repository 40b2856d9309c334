"""packaging/fuzz.sh, over two small targets of libFuzzer: what the end of its output says."""

import pathlib
import re
import shutil

import pytest

import scripts

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIMIT_SECONDS = 300
CMAKE = """cmake_minimum_required(VERSION 3.25)
project(targets LANGUAGES CXX)
add_custom_target(fuzzers)
foreach(name good bad)
  add_executable(${name}_fuzz tests/${name}_fuzz.cc)
  set_target_properties(${name}_fuzz PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
  target_compile_options(${name}_fuzz PRIVATE -g -fsanitize=address,fuzzer)
  target_link_options(${name}_fuzz PRIVATE -fsanitize=address,fuzzer)
  add_dependencies(fuzzers ${name}_fuzz)
endforeach()
"""
PRESETS = """{"version": 3,
 "configurePresets": [{"name": "fuzz", "generator": "Ninja", "binaryDir": "${sourceDir}/build/${presetName}",
                       "cacheVariables": {"CMAKE_CXX_COMPILER": "clang++"}}],
 "buildPresets": [{"name": "fuzz", "configurePreset": "fuzz"}]}
"""
GOOD = """#include <cstddef>
#include <cstdint>
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) { return size > 9 && data[0] == 77 ? -1 : 0; }
"""
BAD = """#include <cstddef>
#include <cstdint>
#include <cstring>
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 4 || std::memcmp(data, "FUZZ", 4) != 0) return 0;
  char* const room = new char[size];
  volatile char beyond = room[size];
  delete[] room;
  return beyond == 0 ? 0 : 0;
}
"""


@pytest.fixture
def tree(tmp_path):
    """A source tree with the real script, and the targets `good` and `bad`."""
    if not shutil.which("clang++"):
        pytest.skip("no clang++ here")
    for name, text in {"CMakeLists.txt": CMAKE, "CMakePresets.json": PRESETS, "tests/good_fuzz.cc": GOOD, "tests/bad_fuzz.cc": BAD}.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    (tmp_path / "tests/corpus").mkdir()
    (tmp_path / "tests/corpus/seed").write_bytes(b"FUZ")
    (tmp_path / "packaging").mkdir()
    for script in ("fuzz.sh", "steps.sh"):
        shutil.copy(ROOT / "packaging" / script, tmp_path / "packaging")
    return tmp_path


def fuzz(tree, *arguments):
    return scripts.run([tree / "packaging/fuzz.sh", *arguments], LIMIT_SECONDS)


def test_the_end_of_the_output_has_a_line_for_each_target_and_the_report_of_one_that_failed(tree):
    done = fuzz(tree, "0.1")
    assert done.returncode == 1, done.stderr
    bad, *report, good = done.stdout.partition("== summary\n")[2].splitlines()
    found = re.fullmatch(r"   bad: FAILED with status \d+, \d+ executions in \d+ s; its input is (\S+), its output build/log/fuzz-bad.log:", bad)
    assert (tree / found[1]).read_bytes().startswith(b"FUZZ")
    assert "heap-buffer-overflow" in report[0] and len(report) <= 16
    assert any("bad_fuzz.cc:7" in line for line in report)
    assert re.fullmatch(r" +Base64: RlVaW\S+", report[-1])
    assert re.fullmatch(r"   good: passed, \d+ executions in \d+ s", good)
    assert "stat::" in (tree / "build/log/fuzz-good.log").read_text() and "stat::" not in done.stdout


def test_a_target_that_passes_gives_status_0_and_one_line(tree):
    done = fuzz(tree, "0.02", "good")
    assert done.returncode == 0, done.stderr
    assert re.search(r"== summary\n   good: passed, \d+ executions in \d+ s\n$", done.stdout)


def test_what_is_no_target_or_no_time_is_refused(tree):
    assert "there is no ugly_fuzz.cc in tests" in fuzz(tree, "0.02", "ugly").stderr
    assert "'soon' is no number of minutes" in fuzz(tree, "soon").stderr
