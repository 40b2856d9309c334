"""`cmake --install` of the release build, used as a stranger would: another program, another folder, nothing of ours around."""

import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

import open_mpi

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("RUNJOB_BUILD", ROOT / "build/release"))
PROGRAM = pathlib.Path(__file__).parent / "program"
LIMIT_SECONDS = 300


def run(*command, **options):
    """The finished command; its output is in the failure when its status is not 0."""
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, check=False, timeout=LIMIT_SECONDS,
        stdin=subprocess.DEVNULL, **options,
    )  # fmt: skip
    assert done.returncode == 0, f"{command}: status {done.returncode}\n{done.stdout}{done.stderr}"
    return done


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    """Installed, then moved: nothing in it may depend on the folder that it was built for."""
    if not (BUILD / "CMakeCache.txt").exists():
        pytest.fail(f"{BUILD} is not built: cmake --preset release && cmake --build --preset release")
    first = tmp_path_factory.mktemp("install") / "first"
    run("cmake", "--install", BUILD, "--prefix", first)
    return first.rename(first.with_name("moved"))


@pytest.fixture(scope="module")
def program(prefix, tmp_path_factory):
    """The folder with the built programs of a user."""
    folder = tmp_path_factory.mktemp("program")
    run("cmake", "-S", PROGRAM, "-B", folder, f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Release")
    run("cmake", "--build", folder)
    return folder


def clean_environment():
    """Without what a surrounding job or build tree would add."""
    mine = re.compile("RUNJOB_|HOROVOD_|LD_LIBRARY_PATH|CMAKE_PREFIX_PATH")
    return {name: value for name, value in os.environ.items() if not mine.match(name)}


def library(prefix):
    (found,) = prefix.glob("lib*/**/librunjob.so")
    return found


def test_everything_is_where_it_is_promised(prefix):
    files = {str(path.relative_to(prefix)) for path in prefix.rglob("*") if path.is_file()}
    assert {"bin/runjob", "libexec/runjob/runjob-agent", "libexec/runjob/runjob-remote", "include/runjob/runjob.h", "include/runjob/runjob.hpp"} <= files
    assert any(re.fullmatch(r"lib.*/cmake/runjob/runjob-config\.cmake|lib.*/cmake/runjob/runjobConfig\.cmake", f) for f in files)
    assert library(prefix).exists()
    assert not [name for name in files if re.search(r"catch|_test$|\.a$", name)], "only what users need is installed"


def needed(path):
    return re.findall(r"\(NEEDED\).*\[(.+)\]", run("readelf", "--dynamic", "--wide", path).stdout)


def test_the_library_needs_no_backend_to_be_loaded(prefix):
    allowed = re.compile(r"lib(c|m|stdc\+\+|gcc_s|pthread|dl|rt)\.so|ld-linux")
    assert not [name for name in needed(library(prefix)) if not allowed.match(name)]


def test_the_launcher_links_no_collectives(prefix):
    assert not [name for name in needed(prefix / "bin/runjob") if re.match("lib(runjob|gloo|torch|cuda|mpi|python)", name)]


def test_the_agent_is_static(prefix):
    agent = prefix / "libexec/runjob/runjob-agent"
    assert "INTERP" not in run("readelf", "--program-headers", "--wide", agent).stdout
    assert needed(agent) == []


@pytest.mark.parametrize("name", ["bin/runjob", "libexec/runjob/runjob-remote", "libexec/runjob/runjob-agent"])
def test_the_programs_are_hardened(prefix, name):
    """cmake/hardening.cmake: at a random address, nothing both writable and executable, all symbols bound and read-only at the start."""
    assert "DYN (Position-Independent" in run("readelf", "--file-header", "--wide", prefix / name).stdout
    segments = run("readelf", "--program-headers", "--wide", prefix / name).stdout
    assert "GNU_RELRO" in segments
    assert re.search(r"GNU_STACK .* RW +0x", segments)
    assert not re.search(r"^ +LOAD .* RWE ", segments, re.MULTILINE)
    assert re.search(r"\(FLAGS_1\).*NOW.*PIE", run("readelf", "--dynamic", "--wide", prefix / name).stdout)
    if not name.endswith("agent"):  # which is stripped
        symbols = run("readelf", "--symbols", "--wide", prefix / name).stdout
        assert "__stack_chk_fail" in symbols and "__memcpy_chk" in symbols


@pytest.mark.parametrize("name", ["sum_c", "sum_cpp"])
def test_a_program_runs_alone(program, name):
    assert run(program / name, env=clean_environment()).stdout == "rank 0 of 1: 1\n"


@pytest.mark.parametrize("name", ["sum_c", "sum_cpp"])
def test_a_program_runs_under_the_installed_launcher(prefix, program, name):
    done = run(prefix / "bin/runjob", "-np", "2", program / name, env=clean_environment(), cwd=program)
    lines = sorted(line.partition(">:")[2].strip() for line in done.stdout.splitlines())
    assert lines == ["rank 0 of 2: 3", "rank 1 of 2: 3"]


def test_the_launcher_finds_its_agent_through_a_link(prefix, program, tmp_path):
    (tmp_path / "runjob").symlink_to(prefix / "bin/runjob")
    assert "rank 1 of 2: 3" in run(tmp_path / "runjob", "-np", "2", program / "sum_c", env=clean_environment()).stdout


def test_the_version_is_the_projects(prefix):
    version = re.search(r"project\(runjob VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text()).group(1)
    assert version in run(prefix / "bin/runjob", "--version").stdout


def test_a_missing_package_version_is_refused(prefix, tmp_path):
    shutil.copytree(PROGRAM, tmp_path / "source")
    lists = tmp_path / "source/CMakeLists.txt"
    lists.write_text(lists.read_text().replace("find_package(runjob 0.1 REQUIRED)", "find_package(runjob 99 REQUIRED)"))
    done = subprocess.run(
        ["cmake", "-S", tmp_path / "source", "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={prefix}"],
        capture_output=True, text=True, check=False, timeout=LIMIT_SECONDS,
    )  # fmt: skip
    assert done.returncode != 0 and "99" in done.stderr


@pytest.fixture(scope="module")
def examples(prefix, tmp_path_factory):
    """The folder with the programs of examples/cpp, built as their first lines say."""
    folder = tmp_path_factory.mktemp("examples")
    run("cmake", "-S", ROOT / "examples/cpp", "-B", folder, f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Release")
    run("cmake", "--build", folder)
    return folder


def test_the_example_of_an_allreduce(prefix, examples):
    done = run(prefix / "bin/runjob", "-np", "3", examples / "allreduce", env=clean_environment(), cwd=examples)
    assert re.fullmatch(r"\[0\]<stdout>:3 ranks, 1048576 floats: each sum is 6, in [\d.]+ ms\n", done.stdout)


def test_mpirun_starts_it_too(examples):
    start = [open_mpi.mpirun(), "--allow-run-as-root", "--oversubscribe", "-np", "3"]
    done = run(*start, examples / "allreduce", env=clean_environment(), cwd=examples)
    assert re.fullmatch(r"3 ranks, 1048576 floats: each sum is 6, in [\d.]+ ms\n", done.stdout)


def trained(done):
    """What each rank of examples/cpp/train.cc says at the end: (loss, accuracy)."""
    found = re.findall(r"rank \d of \d: loss ([\d.]+), accuracy ([\d.]+)$", done.stdout, re.MULTILINE)
    return [(float(loss), float(accuracy)) for loss, accuracy in found]


def test_the_example_of_training_gives_what_one_process_gives(prefix, examples):
    ((loss, accuracy),) = trained(run(examples / "train", env=clean_environment()))
    assert 0 < loss < 0.35 and accuracy > 0.85
    for size in (2, 3):
        done = run(prefix / "bin/runjob", "-np", size, examples / "train", env=clean_environment(), cwd=examples)
        assert trained(done) == [(pytest.approx(loss, abs=2e-6), accuracy)] * size


def test_the_example_of_an_elastic_job_loses_and_gains_a_rank(prefix, examples, tmp_path):
    status_file = tmp_path / "status.json"
    options = ("-np", "3", "--min-np", "2", "--status-file", status_file)
    done = run(prefix / "bin/runjob", *options, examples / "elastic", "400", "1", "100", env=clean_environment(), cwd=examples)
    lines = sorted(line.partition(":")[2] for line in done.stdout.splitlines())
    # The successor of a program that starts quickly may be there before the others have met: then two ranks are never alone.
    sizes = "2 3" if "3 ranks (generation 2)" in done.stderr else "3"
    assert lines == [f"rank {rank} of 3: step 400, y = 3.0000 x -1.0000, resized to: {sizes}" for rank in range(3)]
    assert "rank 1 on localhost was killed by signal 9" in done.stderr
    # A rank that has not ended the commit of step 100 when it learns of the loss has begun no other step.
    redone = [each["steps_redone"] for each in json.loads(status_file.read_text())["generations"]]
    assert redone[0] is None and redone[1] in (0, 1) and redone[2:] in ([], [0])


def test_a_rank_that_is_to_leave_an_elastic_job_in_cpp_ends_well(prefix, examples):
    command = (prefix / "bin/runjob", "-np", "3", "--min-np", "2", examples / "elastic", "1500")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=clean_environment()) as job:
        resize = [prefix / "bin/runjob", "resize", str(job.pid), "-np", "2"]
        while subprocess.run(resize, capture_output=True, env=clean_environment(), check=False).returncode != 0:
            assert job.poll() is None, "it has ended before it could be resized"
        output, _ = job.communicate(timeout=LIMIT_SECONDS)
    assert job.returncode == 0
    lines = sorted(line.partition(":")[2] for line in output.splitlines())
    assert lines == [f"rank {rank} of 2: step 1500, y = 3.0000 x -1.0000, resized to: 2" for rank in range(2)]


def test_the_example_of_training_says_what_it_takes(examples):
    done = subprocess.run([examples / "train", "none"], capture_output=True, text=True, env=clean_environment(), timeout=LIMIT_SECONDS)
    assert (done.returncode, done.stderr) == (1, "train: usage: train [steps], at least 1\n")
