"""python/horovod: the import name, and who owns it."""

import shutil
import subprocess

import pytest

from ranks import ROOT, python

import horovod
import horovod.torch as hvd
import runjob.torch


def test_it_calls_itself_the_last_horovod():
    assert horovod.__version__ == "0.28.1"


@pytest.mark.parametrize("name", sorted({*runjob.torch.__all__} - {"elastic"}))
def test_every_name_is_runjobs(name):
    assert getattr(hvd, name) is getattr(runjob.torch, name)


def test_names_that_scripts_import_from_inside():
    from horovod.common.basics import rank
    from horovod.common.exceptions import HorovodInternalError, HorovodVersionMismatchError, HostsUpdatedInterrupt
    from horovod.common.util import gloo_built
    from horovod.torch.compression import Compression
    from horovod.torch.functions import broadcast_object
    from horovod.torch.mpi_ops import allreduce_async_
    from horovod.torch.optimizer import DistributedOptimizer
    from horovod.torch.sync_batch_norm import SyncBatchNorm

    assert hvd.elastic.ElasticSampler is runjob.torch.elastic.ElasticSampler
    assert issubclass(HorovodInternalError, RuntimeError) and issubclass(HostsUpdatedInterrupt, RuntimeError)
    assert issubclass(HorovodVersionMismatchError, ImportError)
    for value in (rank, Compression, broadcast_object, allreduce_async_, DistributedOptimizer, SyncBatchNorm):
        assert getattr(hvd, value.__name__) is value
    assert gloo_built(verbose=True) == hvd.gloo_built()


@pytest.mark.parametrize(
    "name",
    [
        "torch.compression.Compression", "torch.functions.broadcast_object", "torch.mpi_ops.Sum", "torch.optimizer.DistributedOptimizer",
        "torch.sync_batch_norm.SyncBatchNorm", "torch.elastic.ElasticSampler", "common.exceptions.HorovodInternalError",
        "common.process_sets.ProcessSet", "common.util.gloo_built", "common.basics.rank", "runner.run",
    ],
)  # fmt: skip
def test_modules_are_attributes_of_their_package(name):
    """As after Horovod's own imports, in a process that has imported nothing else."""
    assert python("-c", f"import horovod.torch; horovod.{name}").returncode == 0


@pytest.mark.parametrize("module", ["horovod", "runjob"])
def test_a_missing_name_is_an_attribute_error_on_the_oldest_python_too(module):
    oldest = shutil.which("python3.9")
    if oldest is None or subprocess.run([oldest, "-c", ""], capture_output=True, check=False).returncode != 0:
        pytest.skip("no python3.9 here: the exceptions of Python 3.9 take no name=")
    code = f"import sys; sys.path.insert(0, {str(ROOT / 'python')!r}); import {module}; print(hasattr({module}, 'nonsense'))"
    done = subprocess.run([oldest, "-B", "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("False\n", "")


def _site(folder, *owners):
    """A site-packages in which `owners` have installed the package horovod, ours last."""
    shutil.copytree(ROOT / "python" / "horovod", folder / "horovod")
    for name, version in owners:
        info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        (info / "RECORD").write_text("horovod/__init__.py,sha256=x,1\nhorovod/torch/__init__.py,,\n")
    entry = folder / "horovod-0.28.1.egg-info"  # as our wheel has it
    entry.mkdir()
    shutil.copy(folder / "horovod" / "distribution" / "PKG-INFO", entry)
    return str(folder)


def test_another_owner_of_the_name_is_an_error_that_names_it(tmp_path):
    site = _site(tmp_path, ("runjob-horovod", "0.1.0"), ("horovod", "0.28.1"))
    done = python("-c", f"import sys; sys.path.insert(0, {site!r}); import horovod")
    assert done.returncode == 1
    assert "ImportError: runjob-horovod and horovod 0.28.1 both installed the package horovod" in done.stderr
    assert "pip uninstall horovod runjob-horovod" in done.stderr


def test_alone_it_is_imported(tmp_path):
    site = _site(tmp_path, ("runjob-horovod", "0.1.0"))
    done = python("-c", f"import sys; sys.path.insert(0, {site!r}); import horovod; print(horovod.__file__)")
    assert done.stdout == f"{site}/horovod/__init__.py\n", done.stderr
