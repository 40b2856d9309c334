"""Which Horovod benchmarks take for Horovod: only one whose import loads Horovod's own library."""

import pathlib
import sys
import _ctypes

import pytest

from benchmarks.collectives import installed

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture
def python_with(tmp_path):
    """Makes a Python that has a folder's packages, with a horovodrun beside it."""

    def make(packages):
        (tmp_path / "bin").mkdir()
        for name, line in (("python", f'PYTHONPATH={packages} exec {sys.executable} "$@"'), ("horovodrun", "exit 1")):
            (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{line}\n")
            (tmp_path / "bin" / name).chmod(0o755)
        return str(tmp_path / "bin/python")

    return make


def test_runjobs_own_package_of_that_name_is_left_out_with_its_file(python_with):
    found, reason = installed.horovod(python_with(ROOT / "python"))
    assert found is None
    assert reason.startswith(f"horovod: {ROOT / 'python/horovod/__init__.py'} calls itself horovod 0.28.1 and is not Horovod")
    assert "it loads no library horovod/torch/mpi_lib*.so" in reason and reason.endswith("name another Python with --horovod-python")


def test_a_package_that_loads_the_library_is_horovod_with_version_and_file(python_with, tmp_path):
    package = tmp_path / "packages/horovod"
    (package / "torch").mkdir(parents=True)
    (package / "__init__.py").write_text("__version__ = '0.27.0'\n")
    library = package / "torch/mpi_lib_v2.cpython-311-x86_64-linux-gnu.so"
    library.write_bytes(pathlib.Path(_ctypes.__file__).read_bytes())
    (package / "torch/__init__.py").write_text(f"import ctypes\nlibrary = ctypes.CDLL({str(library)!r})\n")
    python = python_with(package.parent)
    assert installed.horovod(python) == (installed.Horovod(str(tmp_path / "bin/horovodrun"), f"Horovod 0.27.0, {library}"), "")
    assert installed.horovod(python, "tensorflow", "do this") == (
        None, f"horovod: {python} has no horovod.tensorflow with horovodrun beside it: do this",
    )  # fmt: skip


def test_a_python_that_is_not_there_has_no_horovod():
    assert installed.horovod("/nowhere/python")[1].startswith("horovod: /nowhere/python has no horovod.torch")
