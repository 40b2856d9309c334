"""The shell scripts of packaging/: what they say and where they stop. Nothing is installed here."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

import scripts
from testbed import eventually

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPTS = ["packaging/quickstart.sh", "packaging/test.sh", "packaging/test_wheels.sh"]
LIMIT_SECONDS = 60


def bash(code, **environment):
    """`code` after the scripts' parts, in a folder of its own, with nothing of this environment but PATH."""
    parts = "\n".join(f"source {ROOT}/packaging/{part}.sh" for part in ("steps", "packages", "python"))
    return subprocess.run(
        ["bash", "-c", f"set -euo pipefail\n{parts}\n{code}"], capture_output=True, text=True, check=False, timeout=LIMIT_SECONDS,
        env={"PATH": os.environ["PATH"], **environment}, stdin=subprocess.DEVNULL, cwd=environment.get("HOME", ROOT),
    )  # fmt: skip


def run_script(script, *arguments, **environment):
    return scripts.run([ROOT / script, *arguments], LIMIT_SECONDS, **environment)


def os_release(tmp_path, name, version):
    path = tmp_path / "os-release"
    path.write_text(f'ID={name}\nVERSION_ID="{version}"\nPRETTY_NAME="{name} {version}"\n')
    return str(path)


@pytest.mark.parametrize("script", SCRIPTS)
def test_an_unknown_distribution_gets_the_list_and_nothing_else(script, tmp_path):
    done = run_script(script, OS_RELEASE=os_release(tmp_path, "plan9", "4"))
    assert done.returncode == 1
    assert "This is plan9 4" in done.stdout
    assert "libgloo-dev" in done.stdout and "BOOST" in done.stdout and "--no-packages" in done.stdout
    assert "==" not in done.stdout, "it went on"


@pytest.mark.parametrize("script", SCRIPTS)
def test_an_unknown_option_is_refused(script):
    done = run_script(script, "--nonsense")
    assert done.returncode == 1
    assert "unknown option --nonsense" in done.stderr and "--no-packages" in done.stderr


@pytest.mark.parametrize(
    "name, version, package", [("debian", "12", "libboost1.81-dev"), ("ubuntu", "24.04", "libboost1.83-dev")]
)
def test_boost_has_the_name_of_the_distribution(tmp_path, name, version, package):
    assert bash("boost_package", OS_RELEASE=os_release(tmp_path, name, version)).stdout == package + "\n"


def test_packages_that_are_installed_are_not_installed_again(tmp_path):
    if not shutil.which("dpkg-query"):
        pytest.skip("no dpkg here")
    release = os_release(tmp_path, "debian", "12")
    done = bash('install_packages "bash dpkg"', OS_RELEASE=release)
    assert (done.returncode, done.stdout) == (0, "== system packages: all 2 are installed\n"), done.stderr


def test_without_root_and_sudo_it_says_what_root_should_run(tmp_path):
    release = os_release(tmp_path, "debian", "12")
    code = 'PATH={}; id() { echo 1000; }; is_installed() { false; }; hash -r; install_packages "catch2 BOOST"'
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in ("xargs", "echo", "sed", "wc"):
        (tools / tool).symlink_to(shutil.which(tool))
    done = bash(code.replace("{}", str(tools), 1), OS_RELEASE=release)
    assert done.returncode == 1
    assert "there is no sudo; as root, run:\n    apt-get install catch2 libboost1.81-dev" in done.stderr


def test_services_of_the_packages_are_left_stopped(tmp_path):
    """The machine must not begin to listen because somebody runs the tests on it."""
    stubs = "is_installed() { [ $1 != munge ]; }; id() { echo 0; }; env() { :; }; apt-get() { :; }; systemctl() { echo systemctl $*; }"
    environment = {"OS_RELEASE": os_release(tmp_path, "debian", "12"), "HOME": str(tmp_path)}
    with_systemd = bash(f'{stubs}; install_packages "munge openssh-server"', SYSTEMD_FOLDER=str(tmp_path), **environment)
    said = with_systemd.stdout.splitlines()
    assert said.index("systemctl --quiet --runtime mask munge.service") < said.index("== installing system packages")
    assert said[-3:] == [
        "systemctl --quiet disable munge.service", "systemctl --quiet --runtime unmask munge.service",
        "== left stopped: munge.service",
    ], with_systemd  # fmt: skip
    without = bash(f'{stubs}; install_packages "munge openssh-server"', SYSTEMD_FOLDER="/no/such/folder", **environment)
    assert without.returncode == 0 and "systemctl" not in without.stdout, without


def test_a_step_says_what_it_does_and_hides_the_rest(tmp_path):
    done = bash('step "counting" seq 3', HOME=str(tmp_path))
    assert done.returncode == 0
    assert re.fullmatch(r"== counting\n   done in \d+ s\n", done.stdout)
    assert (tmp_path / "build/log/counting.log").read_text() == "1\n2\n3\n"


def test_a_long_name_of_a_step_does_not_make_a_file_name_that_is_too_long(tmp_path):
    modules = " ".join(f"module{number}" for number in range(100))
    done = bash(f'step "installing {modules}" echo installed', HOME=str(tmp_path))
    assert done.returncode == 0, done
    (log,) = (tmp_path / "build/log").iterdir()
    assert log.name.startswith("installing-module0-module1-") and log.read_text() == "installed\n"


def test_a_failing_step_names_itself_and_shows_the_end_of_its_log(tmp_path):
    done = bash('step "counting down" sh -c "seq 100; exit 3"; echo went on', HOME=str(tmp_path))
    assert done.returncode == 1 and "went on" not in done.stdout
    assert "error: 'counting down' failed with status 3; the end of build/log/counting-down.log:" in done.stderr
    assert done.stderr.splitlines()[-1] == "100" and "\n50\n" not in done.stderr


def test_a_python_without_the_modules_is_not_used():
    assert bash('has_modules python3 "no_such_module=x"').returncode == 1
    assert bash('has_modules python3 "json=json sys=sys"').returncode == 0
    assert bash('missing_modules python3 "json=json no_such_module=its-name"').stdout == "its-name\n"


@pytest.mark.parametrize("version, installs", [("3.11", "--require-hashes -r packaging/locks/x.txt"), ("3.12", "one two")])
def test_a_lock_counts_for_the_python_that_it_was_made_for(tmp_path, version, installs):
    (tmp_path / "packaging/locks").mkdir(parents=True)
    (tmp_path / "packaging/locks/x.txt").write_text("# CPython 3.11; made by packaging/lock.sh\none==1\n")
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\ncase "$*" in *version_info*) echo {version} ;; *) echo "$@" ;; esac\n')
    python.chmod(0o755)
    done = bash(f"install_locked {python} x one two", HOME=str(tmp_path))
    assert done.returncode == 0 and done.stdout.splitlines()[-1] == f"-m pip install {installs}", done


def test_every_lock_has_its_python_and_hashes_and_no_address():
    names = re.search(r"NAMES=\((.*)\)", (ROOT / "packaging/lock.sh").read_text()).group(1).split()
    assert sorted(path.stem for path in (ROOT / "packaging/locks").iterdir()) == sorted(names)
    for name in names:
        text = (ROOT / f"packaging/locks/{name}.txt").read_text()
        assert re.match(r"# CPython 3\.\d+; made by packaging/lock\.sh\n", text), name
        assert "://" not in text and "--index" not in text and "--find-links" not in text, name
        versions = re.findall(r"^[a-z0-9][^ ]*==[^ ]+(?: ; .*)? \\\n    --hash=sha256:", text, re.MULTILINE)
        assert versions and len(versions) == len(re.findall(r"^[a-z0-9]", text, re.MULTILINE)), name


def test_the_systems_python_is_left_alone(tmp_path):
    """PEP 668: a file beside the standard library says that pip must not install there."""
    venv = tmp_path / "venv"
    subprocess.run(["python3", "-m", "venv", "--without-pip", venv], check=True, timeout=LIMIT_SECONDS)
    assert bash(f"may_install_into {venv}/bin/python").returncode == 0
    managed = f"""python3() {{ {venv}/bin/python -c "import sys; sys.base_prefix = sys.prefix; import sysconfig
sysconfig.get_path = lambda name: '{tmp_path}'
exec(sys.stdin.read())"; }}
may_install_into python3"""
    assert bash(managed).returncode == 0
    (tmp_path / "EXTERNALLY-MANAGED").write_text("")
    assert bash(managed).returncode == 1


def test_tensorflow_that_a_python_is_too_new_for_is_left_out(tmp_path):
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\ncase "$1" in --version) echo Python 3.99 ;; *) exit 1 ;; esac\n')  # 1: what it asks for is newer
    python.chmod(0o755)
    done = run_script("packaging/tensorflow.sh", "2.13", PYTHON=str(python))
    assert (done.returncode, done.stdout) == (0, "== left out: TensorFlow 2.13, which does not exist for Python 3.99\n")


def subjects(*arguments):
    command = ["python3", ROOT / "packaging/subjects.py", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT_SECONDS)


def steps(*arguments):
    done = subjects(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_subject_with_a_program_of_its_own_runs_all_of_it_and_builds_nothing_else():
    assert steps("hostfile") == steps("tests/hostfile/") == ["target hostfile_test", "ctest hostfile"]


def test_a_subject_that_is_a_part_of_a_program_runs_the_cases_of_its_files():
    target, cases = steps("runtime/engine")
    assert target == "target runtime_test"
    program, tags = re.fullmatch(r"cases (\w+) (.*)", cases).groups()
    files = sorted((ROOT / "tests/runtime/engine").glob("*_test.cc"))
    assert program == "runtime_test"
    assert sorted(tags.split(",")) == [f"[#{file.stem}]" for file in files]


def test_a_subject_has_the_python_tests_of_its_name_too():
    lines = steps("launcher/output")
    assert "pytest tests/python/launcher/test_output.py" in lines and "target runjob_command" in lines
    assert steps("torch") == steps("python/torch") and "pytest tests/python/torch" in steps("torch")


def test_what_reads_only_sources_builds_nothing():
    assert steps("structure") == ["pytest tests/structure"]
    assert steps("packaging") == ["install", "pytest tests/packaging"]


def test_tensorflow_has_environments_of_its_own():
    assert steps("tensorflow") == steps("bindings/tensorflow")
    assert steps("tensorflow")[-2:] == ["target runjob_tensorflow", "tensorflow"]


def test_several_subjects_build_each_target_once():
    lines = steps("hostfile", "torch", "numpy", "hostfile")
    assert len(lines) == len(set(lines)) and {"ctest hostfile", "pytest tests/python/numpy"} <= set(lines)


def test_every_test_program_and_every_python_test_has_a_subject():
    known = subjects("no such").stderr.split("There are:\n")[1].split()
    every = steps(*known)
    for path in (ROOT / "tests").rglob("test_*.py"):
        covered = {f"pytest {folder.relative_to(ROOT)}" for folder in (path, *path.parents) if ROOT in folder.parents}
        assert covered & set(every) or "tensorflow" in path.parts, path
    for path in (ROOT / "tests").rglob("CMakeLists.txt"):
        for program in re.findall(r"runjob_add_test\((\w+)\s", path.read_text()):
            assert program == "folder" or f"ctest {program}" in every, program


def test_an_unknown_subject_names_the_nearest_one_and_lists_all():
    done = run_script("packaging/test.sh", "runtime/enginee", OS_RELEASE="/no/such/file")
    assert (done.returncode, done.stdout) == (1, ""), "it went on"
    assert "there are no tests of 'runtime/enginee'; the nearest subject is 'runtime/engine'. There are:" in done.stderr
    assert {"    hostfile", "    torch", "    structure"} <= set(done.stderr.splitlines())


@pytest.mark.parametrize("subject", ["", "..", "/", "tests"])
def test_what_is_no_folder_of_tests_is_no_subject(subject):
    assert subjects(subject).returncode == 1


def test_an_extent_and_a_subject_exclude_each_other():
    done = run_script("packaging/test.sh", "--thorough", "hostfile")
    assert done.returncode == 1 and "--thorough is for all tests; leave it out with a subject" in done.stderr


def test_ci_runs_the_test_script_and_nothing_else():
    lines = (ROOT / ".ci/run").read_text().splitlines()
    assert lines == ["#!/usr/bin/env bash", 'exec bash "$(dirname "$0")/../packaging/test.sh"']


def test_shellcheck():
    if not (shellcheck := shutil.which("shellcheck")):
        pytest.skip("shellcheck is not installed")
    paths = [*sorted(ROOT.glob("packaging/*.sh")), ROOT / ".ci/run"]
    done = subprocess.run([shellcheck, "-x", *paths], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout


#: A `python` that builds for as long as a test likes, and notes what it was asked for.
BUILDER = """#!/usr/bin/env bash
echo "$*" >>asked
case "$*" in
  *"pip wheel"*) echo compiling; sleep "${SLEEP:-0}" & echo $! >compiler; wait; [ -z "${FAIL:-}" ] || exit 3; mkdir -p build/wheels; touch build/wheels/runjob.whl ;;
esac
"""
PREPARED = 'sources_fingerprint() { echo "$SOURCES"; }; python=$PWD/python'


@pytest.fixture
def builder(tmp_path):
    (tmp_path / "build").mkdir()
    (tmp_path / "python").write_text(BUILDER)
    (tmp_path / "python").chmod(0o755)
    return lambda code, **environment: bash(f"{PREPARED}; {code}", HOME=str(tmp_path), SOURCES="1", **environment)


def test_runjob_is_built_once_beside_the_download_and_installed(builder, tmp_path):
    done = builder('begin_building_runjob; begin_building_runjob; step "downloading" true; install_runjob; install_runjob')
    assert done.returncode == 0, done
    said = [line for line in done.stdout.splitlines() if line.startswith("==")]
    assert said == [
        "== downloading", "== building runjob", "== installing runjob with pip", "== runjob: installed from these sources already",
    ]  # fmt: skip
    asked = [line.split()[2] for line in (tmp_path / "asked").read_text().splitlines() if "pip" in line]
    assert asked == ["wheel", "install", "install"]


def test_a_build_that_fails_beside_the_download_shows_the_end_of_its_log(builder):
    done = builder('begin_building_runjob; step "downloading" true; install_runjob; echo went on', FAIL="1")
    assert done.returncode == 1 and "went on" not in done.stdout
    assert "error: 'building runjob' failed with status 3" in done.stderr and done.stderr.splitlines()[-1] == "compiling"


def test_a_script_that_ends_early_ends_the_compilers(builder, tmp_path):
    done = builder('begin_building_runjob; until [ -s compiler ]; do sleep 0.1; done; step "downloading" false', SLEEP="1000")
    assert "'downloading' failed" in done.stderr
    eventually(lambda: not pathlib.Path("/proc", (tmp_path / "compiler").read_text().strip()).exists(), "the compiler ends")
