"""runjob-probe with libraries of our making beside it: what it opens, what it says when that fails."""

import os
import resource
import shutil
import subprocess
from pathlib import Path

import pytest

RUNJOB = os.environ.get("RUNJOB_BIN") or str(
    Path(__file__).resolve().parents[2] / "build" / "release" / "bin" / "runjob"
)
PROBE = Path(RUNJOB).with_name("runjob-probe")
DOCUMENT = '{"backends":[{"name":"gloo","kind":"cpu","available":true,"version":"9.9","path":"/g.so","reason":""}]}'


def make_library(directory, body):
    directory.mkdir(parents=True, exist_ok=True)
    source = directory / "library.c"
    source.write_text("#include <stdlib.h>\n" + body)
    compiler = shutil.which("cc") or shutil.which("gcc") or pytest.skip("no C compiler")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", directory / "librunjob.so", source], check=True, timeout=60)


def answer(document):
    escaped = document.replace('"', '\\"')
    return f'const char* runjob_backends_json(void) {{ return "{escaped}"; }}\n'


@pytest.fixture
def tree(tmp_path):
    """An installed tree: prefix/bin, prefix/libexec/runjob, prefix/lib."""
    for program, place in ((Path(RUNJOB), "bin/runjob"), (PROBE, "libexec/runjob/runjob-probe")):
        (tmp_path / place).parent.mkdir(parents=True)
        shutil.copy(program, tmp_path / place)
    return tmp_path


def check_build(tree):
    result = subprocess.run([tree / "bin/runjob", "--check-build"], capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stderr) == (0, "")
    return result.stdout


@pytest.mark.parametrize("place", ["lib", "libexec/runjob", "libexec/lib"])
def test_the_library_is_found_relative_to_the_probe(tree, place):
    make_library(tree / place, answer(DOCUMENT))
    text = check_build(tree)
    assert "Available Controllers:\n    [ ] MPI\n    [X] Gloo\n" in text
    assert "    gloo        9.9, /g.so\n" in text


def test_a_library_that_crashes_takes_only_the_probe_with_it(tree):
    make_library(tree / "lib", "const char* runjob_backends_json(void) { abort(); }\n")
    assert "not known: runjob-probe was killed by signal 6 (Aborted)" in check_build(tree)


def test_a_library_that_cannot_be_used_is_named(tree):
    assert "librunjob.so is not in " in check_build(tree)
    make_library(tree / "lib", "int something_else;\n")
    assert "librunjob.so has no runjob_backends_json: it is of another version" in check_build(tree)
    (tree / "lib/librunjob.so").write_text("no library\n")
    assert "invalid ELF header" in check_build(tree) or "file too short" in check_build(tree)


def test_a_limit_of_the_size_of_files_is_a_reason_not_the_end_of_the_probe():
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    result = subprocess.run([RUNJOB, "--check-build"], capture_output=True, text=True, timeout=60, preexec_fn=limit)
    assert "and the limit (ulimit -f) is 0 bytes" in result.stdout
