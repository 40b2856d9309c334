"""The two distributions as pip installed them: used from a folder of its own, with nothing of the source tree on a path."""

import importlib.metadata
import os
import pathlib
import re
import subprocess
import sys
import sysconfig

import pytest

LIMIT_SECONDS = 120
SCRIPTS = pathlib.Path(sysconfig.get_path("scripts"))


def distribution(name):
    try:
        return importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        pytest.skip(f"{name} is not installed in this environment; packaging/test.sh does it")


def run(folder, *command):
    hidden = re.compile("RUNJOB_|HOROVOD_|PYTHONPATH|LD_LIBRARY_PATH")
    environment = {name: value for name, value in os.environ.items() if not hidden.match(name)}
    return subprocess.run(
        [str(word) for word in command], cwd=folder, env=environment, capture_output=True, text=True, check=False,
        timeout=LIMIT_SECONDS, stdin=subprocess.DEVNULL,
    )  # fmt: skip


def test_the_programs_are_in_the_environment():
    files = {pathlib.Path(file.locate()).resolve() for file in distribution("runjob-launcher").files}
    root = SCRIPTS.parent.resolve()
    programs = {root / "bin/runjob", root / "libexec/runjob/runjob-agent", root / "libexec/runjob/runjob-remote"}
    modules = {root / f"lib/runjob/librunjob_{name}.so" for name in ("gloo", "gpu")}
    assert programs | modules | {root / "lib/librunjob.so"} <= files
    assert all(os.access(program, os.X_OK) for program in programs)
    assert not [file for file in files if file.suffix in (".a", ".cc") or file.name == "CMakeLists.txt"]


def test_one_wheel_serves_every_python():
    wheel = distribution("runjob-launcher").read_text("WHEEL")
    assert re.search(r"^Tag: py3-none-(many)?linux_", wheel, re.MULTILINE)
    assert "Tag: py3-none-any" in distribution("runjob-horovod").read_text("WHEEL")


@pytest.mark.parametrize("module", ["runjob.torch", "horovod.torch"])
def test_ranks_sum_with_the_installed_package(module, tmp_path):
    distribution("runjob-launcher"), distribution("runjob-horovod")
    code = f"""
import torch, {module} as hvd
hvd.init()
print(hvd.__file__, hvd.allreduce(torch.tensor([hvd.rank() + 1.0]), op=hvd.Sum, name="x").item(), flush=True)
"""
    done = run(tmp_path, SCRIPTS / "runjob", "-np", "2", sys.executable, "-c", code)
    assert done.returncode == 0, done.stdout + done.stderr
    source_tree = pathlib.Path(__file__).resolve().parents[2] / "python"
    lines = [line.partition(">:")[2].split() for line in done.stdout.splitlines()]
    assert [float(value) for _, value in lines] == [3.0, 3.0]
    assert not [path for path, _ in lines if pathlib.Path(path).is_relative_to(source_tree)]


def test_both_have_the_version_of_the_project():
    project = (pathlib.Path(__file__).resolve().parents[2] / "CMakeLists.txt").read_text()
    version = re.search(r"project\(runjob VERSION (\S+)", project).group(1)
    assert distribution("runjob-launcher").version == distribution("runjob-horovod").version == version
