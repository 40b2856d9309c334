"""Each command of the README, and of the pages that lead, is run, and its output is compared with what the page shows."""

import os
import pathlib
import subprocess
import sys

import pytest

import entry_points
import pages
from testbed import Testbed

ROOT = pathlib.Path(__file__).resolve().parents[2]
RUNJOB = pathlib.Path(os.environ.get("RUNJOB_BIN", ROOT / "build" / "release" / "bin" / "runjob"))
BUILD = pathlib.Path(os.environ.get("RUNJOB_BUILD", ROOT / "build" / "release"))
PAGES = ["README.md", *(f"docs/{name}.md" for name in ("checkpoints", "cpp", "ddp", "elastic", "pytorch", "troubleshooting"))]
MOST_SAMPLES = 0.2
LIMIT_SECONDS = 240
HOSTS_FOLDER = "/tmp/job"  # on each host of the testbed


def all_commands():
    return [(page, command) for page in PAGES for command in pages.read(ROOT / page).commands]


def variables(folder):
    """Those of a shell in which runjob is installed."""
    programs = [str(RUNJOB.parent), str(pathlib.Path(sys.executable).parent), "/usr/bin", "/bin"]
    return {"PATH": os.pathsep.join(programs), "PYTHONPATH": str(ROOT / "python"), "OMP_NUM_THREADS": "1", "HOME": str(folder)}


def prepare(folder, page):
    """What a page's reader has in the folder: the page's files, and the parts of a clone that commands name."""
    for name, text in page.files.items():
        (folder / name).write_text(text)
    for target, name in ((ROOT / "examples", "examples"), (BUILD, "build/release")):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).symlink_to(target)


def check(command, done):
    printed = done.stdout.splitlines()
    where = f"line {command.line}: {command.text}\nstatus {done.returncode}\n{done.stdout}"
    assert done.returncode == command.status, where
    different = pages.difference(command.output, printed)
    assert not different, f"{where}\n{different}"


@pytest.mark.parametrize("name", PAGES)
def test_the_commands_of_a_page_print_what_it_shows(name, tmp_path):
    page = pages.read(ROOT / name)
    prepare(tmp_path, page)
    environment = {**os.environ, **variables(tmp_path)}
    environment["PYTHONPATH"] += os.pathsep + str(entry_points.install(tmp_path / "installed"))
    commands = [command for command in page.commands if not command.sample and "-H s1" not in command.text]
    assert commands
    for command in commands:
        done = subprocess.run(
            ["bash", "-c", command.text], cwd=tmp_path, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=LIMIT_SECONDS, check=False,
        )  # fmt: skip
        check(command, done)


def test_commands_that_name_other_hosts():
    """Each host has the page's files at the same path, as the pages ask for."""
    found = [(name, command) for name, command in all_commands() if "-H s1" in command.text and not command.sample]
    assert found
    with Testbed(hosts=2, visible=[sys.prefix]) as bed:
        for name, command in found:
            for host in (bed.head, *bed.hosts):
                for file, text in pages.read(ROOT / name).files.items():
                    host.write(f"{HOSTS_FOLDER}/{file}", text)
            shell = ["bash", "-c", f"cd {HOSTS_FOLDER} && {command.text} 2>&1"]
            settings = {key: value for key, value in variables("").items() if key != "HOME"}
            check(command, bed.head.run(shell, variables=settings, timeout=LIMIT_SECONDS))


def test_every_block_of_these_pages_is_a_command_a_file_or_code():
    strays = {name: page.strays for name in PAGES if (page := pages.read(ROOT / name)).strays}
    assert not strays, "begin the commands of these blocks with $, or name the block's language"


def test_few_commands_are_samples():
    commands = [command for _, command in all_commands()]
    samples = [command.text for command in commands if command.sample]
    assert len(samples) <= MOST_SAMPLES * len(commands), samples


PAGE = """
Text.

<!-- file: a.py -->
```python
print(1)
```

    $ runjob a \\
        b
    [0]<stdout>:loss 0.5 after 3 s

<!-- sample: takes an hour -->

    $ make
    $ false
    $ echo $?
    1

More text.

    stray
"""


def test_a_page_is_read(tmp_path):
    (tmp_path / "page.md").write_text(PAGE)
    page = pages.read(tmp_path / "page.md")
    assert page.files == {"a.py": "print(1)\n"}
    run, make, false = page.commands
    assert (run.text, run.output, run.sample, run.status) == ("runjob a \\\n    b", ["[0]<stdout>:loss 0.5 after 3 s"], "", 0)
    assert (make.text, make.sample, false.status, false.output) == ("make", "takes an hour", 1, [])
    assert page.strays == [PAGE.splitlines().index("    stray") + 1]


@pytest.mark.parametrize(
    "shown, printed, is_same",
    [
        (["[0]<stdout>:a 0.5", "[1]<stdout>:b"], ["[1]<stdout>:b", "[0]<stdout>:a 0.75"], True),
        (["[0]<stdout>:a 1", "[0]<stdout>:b"], ["[0]<stdout>:b", "[0]<stdout>:a 1"], False),
        (["rank 1 after 3 s (pid 5)"], ["rank 1 after 12 s (pid 77)"], True),
        (["rank 1 after 3 s"], ["rank 2 after 3 s"], False),
        (['File "train.py", line 3'], ['File "/home/me/train.py", line 3'], True),
        (["a", "...", "c"], ["a", "b", "c"], True),
        (["a", "...", "c"], ["a", "b"], False),
        (["a"], ["a", "b"], False),
    ],
)
def test_outputs_are_compared_without_what_differs_from_run_to_run(shown, printed, is_same):
    assert (pages.difference(shown, printed) == "") is is_same
