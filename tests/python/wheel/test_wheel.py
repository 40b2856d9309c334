"""The two distributions, built by pip and installed into an empty environment: no framework, no compiler, no checkout."""

import json
import os
import subprocess
import sys
import zipfile

import pytest

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
    done = _run(folder / "bin" / "python", "-m", "pip", "install", "--no-index", *wheels.values())
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_there_are_two_and_neither_is_for_one_version_of_python(wheels):
    assert sorted(wheels) == ["runjob_horovod", "runjob_launcher"]
    assert wheels["runjob_horovod"].name.endswith("-py3-none-any.whl")
    assert "-py3-none-linux_" in wheels["runjob_launcher"].name


def test_the_wheel_holds_programs_library_and_python_files_and_no_more(wheels):
    files = zipfile.ZipFile(wheels["runjob_launcher"]).namelist()
    for name in ("runjob/py.typed", "runjob/torch/__init__.py", "/bin/runjob", "/libexec/runjob/runjob-agent", "/libexec/runjob/runjob-remote",
                 "/lib/librunjob.so", "/lib/runjob/librunjob_gloo.so"):  # fmt: skip
        assert any(file.endswith(name) for file in files), name
    assert not [file for file in files if file.endswith((".cc", ".hpp", ".cmake", ".a", ".txt", ".so.0"))]
    files = zipfile.ZipFile(wheels["runjob_horovod"]).namelist()
    assert "horovod/torch/__init__.py" in files and not [file for file in files if file.endswith("pyproject.toml")]


JOB = """
import json, horovod, runjob.backends, runjob.basics as basics
basics.init()
line = [basics.rank(), basics.size(), runjob.backends.gloo_built(), runjob.__file__, horovod.__version__]
print(json.dumps(line))
"""


def test_ranks_find_each_other_from_the_installed_files_alone(installed):
    done = _run(installed / "bin" / "runjob", "-np", "2", installed / "bin" / "python", "-c", JOB)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = sorted(json.loads(line.split(">:")[1]) for line in done.stdout.splitlines())
    assert [line[:3] for line in lines] == [[0, 2, True], [1, 2, True]]
    assert all(line[3].startswith(str(installed)) and line[4] == "0.28.1" for line in lines)


def test_a_module_of_an_absent_framework_names_the_framework(installed):
    done = _run(installed / "bin" / "python", "-c", "import runjob.torch")
    assert "No module named 'torch'" in done.stderr


def test_uninstalling_leaves_nothing(wheels, tmp_path):
    assert _run(sys.executable, "-m", "venv", tmp_path / "venv").returncode == 0
    python = tmp_path / "venv" / "bin" / "python"
    _run(python, "-m", "pip", "install", "--no-index", *wheels.values())
    assert _run(python, "-m", "pip", "uninstall", "-y", "runjob-launcher", "runjob-horovod").returncode == 0
    assert not [path for path in (tmp_path / "venv").rglob("*") if "runjob" in path.name or "horovod" in path.name]
