"""Each script of docs/pytorch-libraries.md runs on two hosts, as the page shows it, where its library is installed. Over the
backend runjob it prints the same.
"""

import importlib.util
import pathlib
import re
import sys

import pages
import pytest
from test_pages import LIMIT_SECONDS, ROOT, check, variables
from testbed import Testbed

sys.path += [str(ROOT / "tests" / "python"), str(ROOT / "tests" / "python" / "torch" / "distributed")]
import entry_points  # noqa: E402
import installed_ranks  # noqa: E402

PAGE = ROOT / "docs" / "pytorch-libraries.md"
LIBRARIES = ("torch", "lightning_fabric", "pytorch_lightning", "accelerate", "transformers")
#: Those that take long and find what the others find. The rest takes less than a minute in all.
LONG = ("train_lightning.py", "train_trainer.py")

pytest.importorskip("torch")


def script_of(command):
    """The file of the page that a command runs."""
    return re.search(r"python (\S+\.py)", command.text).group(1)


def commands():
    found = pages.read(PAGE).commands
    return [pytest.param(each, id=script_of(each), marks=[pytest.mark.thorough] if script_of(each) in LONG else []) for each in found]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder for PYTHONPATH in which PyTorch finds the entry points of the package."""
    return entry_points.install(tmp_path_factory.mktemp("packages") / "installed")


@pytest.fixture(scope="module")
def bed(installed):
    with Testbed(hosts=2, visible=[sys.prefix, str(installed)], shared_home=True) as bed:
        yield bed


def missing_libraries(text):
    named = {name for name in LIBRARIES if re.search(rf"^(?:import|from) {name}\b", text, re.MULTILINE)}
    return sorted(name for name in named if importlib.util.find_spec(name) is None)


def run_on_two_hosts(bed, command, text, **changes):
    """Runs a command of the page, of which `text` may have another option, and compares what it prints."""
    script = pages.read(PAGE).files[script_of(command)]
    if missing := missing_libraries(script):
        pytest.skip(f"{', '.join(missing)} is not installed; packaging/packages.sh has the names of the packages")
    folder = pathlib.Path(bed.head.home, "job")
    for host in (bed.head, *bed.hosts):
        host.write(str(folder / script_of(command)), script)
    shell = ["bash", "-c", f"cd {folder} && {text} 2>&1"]
    settings = {key: value for key, value in {**variables(""), **changes}.items() if key != "HOME"}
    check(command, bed.head.run(shell, variables=settings, timeout=LIMIT_SECONDS))


@pytest.mark.parametrize("command", commands())
def test_a_script_runs_on_two_hosts_as_the_page_shows(bed, command):
    run_on_two_hosts(bed, command, command.text)


@pytest.mark.thorough
@pytest.mark.parametrize("command", commands())
def test_a_script_runs_over_the_backend_runjob(bed, installed, command):
    text = command.text.replace("runjob ", "runjob --torch-backend runjob ", 1)
    run_on_two_hosts(bed, command, text, PYTHONPATH=installed_ranks.path_of(installed))


def test_every_library_has_a_script_on_the_page():
    text = PAGE.read_text(encoding="utf-8")
    assert not [name for name in LIBRARIES if not re.search(rf"^(?:import|from) {name}\b", text, re.MULTILINE)]
    assert len(commands()) >= 5
    assert not pages.read(PAGE).strays
