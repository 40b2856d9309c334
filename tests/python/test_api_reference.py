"""Every public name says what it is, and packaging/api.sh makes a reference of that without a complaint."""

import importlib
import inspect
import subprocess
import sys

import pytest
import ranks
from ranks import ROOT, environment

MODULES = ["runjob.torch", "runjob.numpy", "runjob.elastic", "runjob.torch.elastic", "runjob.exceptions", "horovod.common.util", "horovod.torch.compression"]


def public_names(module):
    loaded = importlib.import_module(module)
    own = [name for name, value in vars(loaded).items() if getattr(value, "__module__", None) == module and name[0] != "_"]
    return getattr(loaded, "__all__", own)


def described(value):
    """The value and, of a class, its public functions that are our own: by name."""
    yield "", value
    if not inspect.isclass(value):
        return
    for name, member in inspect.getmembers(value, lambda each: inspect.isfunction(each) or isinstance(each, property)):
        function = member.fget if isinstance(member, property) else member
        if not name.startswith("_") and function.__module__.split(".")[0] in ("runjob", "horovod"):
            yield f".{name}", member


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_has_a_docstring(module):
    names = public_names(module)
    assert names
    values = [(name, getattr(importlib.import_module(module), name)) for name in names]
    without = [
        f"{module}.{name}{part}"
        for name, value in values
        if not isinstance(value, (int, tuple, str))
        for part, member in described(value)
        if not (inspect.getdoc(member) or "").strip()
    ]
    assert not without


@pytest.mark.parametrize("module", ["runjob.torch", "runjob.numpy"])
def test_what_can_be_refused_says_how(module):
    loaded = importlib.import_module(module)
    functions = [(name, getattr(loaded, name)) for name in loaded.__all__ if inspect.isroutine(getattr(loaded, name))]
    collectives = [(name, function) for name, function in functions if "process_set" in inspect.signature(function).parameters]
    assert len(collectives) > 20
    silent = [name for name, function in collectives if "Errors" not in inspect.getdoc(function)]
    assert not silent


DIR = """
import importlib, sys, types
module = importlib.import_module(sys.argv[1])
print(*(name for name in dir(module) if isinstance(getattr(module, name, None), types.ModuleType)))
"""


@pytest.mark.parametrize(
    "module, modules",
    [
        ("runjob.torch", ["elastic"]),
        ("runjob.numpy", []),
        ("runjob.keras", ["callbacks", "elastic"]),
        ("horovod", ["runner"]),
        ("horovod.torch", ["compression", "elastic", "functions", "mpi_ops", "optimizer", "sync_batch_norm"]),
        ("horovod.keras", ["callbacks", "elastic"]),
        ("horovod.runner", ["arguments"]),
    ],
)
def test_dir_lists_no_other_module_than_public_ones(module, modules):
    done = ranks.python("-c", DIR, module, KERAS_BACKEND="torch")
    assert (done.returncode, done.stdout.split()) == (0, modules), done.stderr


def test_modules_that_dir_leaves_out_are_there():
    loaded = importlib.import_module("runjob.torch")
    assert sorted(loaded.__all__) == dir(loaded) and loaded.buckets is importlib.import_module("runjob.torch.buckets")


def test_the_reference_is_made_without_a_complaint(tmp_path):
    environment_of_it = environment(PYTHON=sys.executable)
    command = [str(ROOT / "packaging" / "api.sh"), str(tmp_path)]
    done = subprocess.run(command, env=environment_of_it, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    modules = ("runjob", "runjob/torch", "runjob/torch/elastic", "runjob/numpy", "runjob/elastic", "runjob/exceptions")
    assert all((tmp_path / f"{name}.html").exists() for name in ("index", *modules))
    page = (tmp_path / "runjob" / "numpy.html").read_text()
    for name in ("allreduce", "alltoall", "empty_symmetric", "ProcessSet", "Compression"):
        assert f'id="{name}"' in page, name
