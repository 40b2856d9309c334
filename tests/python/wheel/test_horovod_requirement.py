"""python/horovod/distribution: runjob-horovod satisfies requirements for Horovod, as pip and importlib.metadata see them."""

import json
import os
import re
import subprocess
import sys
import zipfile

import pytest

from ranks import ROOT

EXTRAS = (
    "all-frameworks dev keras mxnet pytorch pytorch-spark ray spark tensorflow tensorflow-cpu tensorflow-gpu test"
).split()


def _run(*command):
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(list(map(str, command)), env=inherited, capture_output=True, text=True, cwd="/", timeout=600)


def _environment(folder):
    """An empty environment's Python."""
    assert _run(sys.executable, "-m", "venv", folder).returncode == 0
    return folder / "bin" / "python"


def _pip(python, *words, status=0):
    done = _run(python, "-m", "pip", "--disable-pip-version-check", *words)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    _pip(sys.executable, "wheel", "--no-deps", "-w", folder, ROOT / "python" / "horovod")
    (wheel,) = folder.iterdir()
    return wheel


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory):
    """An environment with runjob-horovod alone, whose Python files need nothing else for `import horovod`."""
    python = _environment(tmp_path_factory.mktemp("environment") / "v")
    _pip(python, "install", "--no-deps", wheel)
    return python


def test_the_version_and_the_extras_are_horovods(python):
    code = (
        "import json, importlib.metadata as m, horovod; found = m.metadata('horovod');"
        "print(json.dumps([m.version('horovod'), horovod.__version__, sorted(found.get_all('Provides-Extra')), m.requires('horovod')]))"
    )
    version, of_module, extras, requires = json.loads(_run(python, "-c", code).stdout)
    assert (version, of_module, extras, requires) == ("0.28.1", "0.28.1", EXTRAS, None)


def test_requirements_for_horovod_are_satisfied(python, tmp_path):
    lines = [f"horovod[{extra}]" for extra in EXTRAS] + ["horovod", "horovod[pytorch,tensorflow]==0.28.1", "horovod>=0.21,<0.29"]
    (tmp_path / "requirements.txt").write_text("\n".join(lines))
    told = _pip(python, "install", "--no-index", "-r", tmp_path / "requirements.txt")
    assert "already satisfied: horovod" in told and "does not provide the extra" not in told and "Collecting" not in told
    assert "No matching distribution found for horovod>=0.29" in _pip(python, "install", "--no-index", "horovod>=0.29", status=1)


def test_pip_lists_both_and_misses_only_the_launcher(python):
    listed = {each["name"]: each["version"] for each in json.loads(_run(python, "-m", "pip", "list", "--format", "json").stdout)}
    assert listed["horovod"] == "0.28.1" and "runjob-horovod" in listed
    told = _pip(python, "check", status=1)
    assert re.fullmatch(r"runjob-horovod \S+ requires runjob-launcher, which is not installed.", told.strip())


@pytest.mark.thorough
def test_uninstalling_takes_the_entry_along(wheel, tmp_path):
    python = _environment(tmp_path / "v")
    _pip(python, "install", "--no-deps", wheel)
    _pip(python, "uninstall", "-y", "runjob-horovod")
    assert not [path for path in (tmp_path / "v").rglob("*") if "horovod" in path.name]
    assert "PackageNotFoundError" in _run(python, "-c", "import importlib.metadata as m; m.version('horovod')").stderr


def _real_horovod(folder):
    """A wheel as Horovod's own, of one module: building that takes a compiler and a framework."""
    wheel = folder / "horovod-0.28.1-py3-none-any.whl"
    info = "horovod-0.28.1.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("horovod/__init__.py", "__version__ = '0.28.1'\n")
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: horovod\nVersion: 0.28.1\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", f"horovod/__init__.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")
    return wheel


def test_horovod_itself_beside_it_is_refused_until_both_are_gone(wheel, tmp_path):
    python = _environment(tmp_path / "v")
    _pip(python, "install", "--no-index", _real_horovod(tmp_path))
    _pip(python, "install", "--no-deps", wheel)
    refusal = _run(python, "-c", "import horovod").stderr
    assert "ImportError: runjob-horovod and horovod 0.28.1 both installed the package horovod" in refusal
    remedy = re.search(r"pip (uninstall .*)", refusal).group(1).split()
    _pip(python, *remedy, "-y")
    _pip(python, "install", "--no-deps", wheel)
    assert _run(python, "-c", "import horovod; print(horovod.__version__)").stdout == "0.28.1\n"
