"""Rules for each file: size, a test of its own, headers that compile alone, formatting, and calls with one home."""

import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess

import pytest
import source_tree

MOST_LINES = 500

# Sources without a C++ test of their name, and the test that runs them as part of real jobs instead: what they do is
# done to processes, signals and pipes.
TESTED_ELSEWHERE = {
    "base/fmt.cc": "tests/base/error_test.cc",
    "runtime/c_timeline.cc": "tests/runtime/timeline_test.cc",
    "runtime/mpi_start/pmix_store.cc": "tests/python/mpi/test_mpirun.py",
    "runtime/probe/probe.cc": "tests/python/test_probe.py",
    "runtime/engine/engine_driver.cc": "tests/runtime/engine_test.cc",
    "runtime/engine/engine_watcher.cc": "tests/runtime/engine_test.cc",
    "runtime/c_collectives.cc": "tests/runtime/c_api_test.cc",
    "runtime/c_operation.cc": "tests/runtime/c_api_test.cc",
    "tensorflow_operations/c_interface.cc": "tests/python/tensorflow/test_kernels.py",
    "tensorflow_operations/collective_kernels.cc": "tests/python/tensorflow/test_tensorflow_operations.py",
    "tensorflow_operations/completion_thread.cc": "tests/python/tensorflow/test_tensorflow_operations.py",
    "tensorflow_operations/op_definitions.cc": "tests/python/tensorflow/test_tensorflow_operations.py",
    "tensorflow_operations/operation.cc": "tests/python/tensorflow/test_nodes.py",
    "tensorflow_operations/place.cc": "tests/python/tensorflow/test_tensorflow_operations.py",
    "tensorflow_operations/plugin.cc": "tests/python/tensorflow/test_kernels.py",
    "tensorflow_operations/running_operation.cc": "tests/python/tensorflow/test_tensorflow_operations.py",
    "tensorflow_operations/tensors.cc": "tests/python/tensorflow/test_tensorflow_matrix.py",
    "cli/command.cc": "tests/python/test_cli.py",
    "cli/main.cc": "tests/python/launcher/test_exit.py",
    "cli/main_remote.cc": "tests/python/remote/test_ssh_jobs.py",
    "launcher/agent/agent.cc": "tests/python/launcher/test_exit.py",
    "launcher/agent/guard.cc": "tests/python/launcher/test_exit.py",
    "launcher/agent/host_facts.cc": "tests/python/launcher/test_environment.py",
    "launcher/agent/input_pipe.cc": "tests/python/launcher/test_input.py",
    "launcher/agent/main.cc": "tests/python/launcher/test_exit.py",
    "launcher/agent/rank_placement.cc": "tests/python/launcher/test_placement.py",
    "launcher/agent/run_agent.cc": "tests/python/launcher/test_exit.py",
    "launcher/agent/output_pipe.cc": "tests/python/launcher/test_output.py",
    "launcher/agent/stack_collector.cc": "tests/python/launcher/test_stack_traces.py",
    "launcher/agent_session.cc": "tests/python/launcher/test_exit.py",
    "launcher/channel_ssh_program.cc": "tests/python/remote/test_ssh_jobs.py",
    "launcher/channel_local.cc": "tests/python/launcher/test_exit.py",
    "launcher/fd_channel.cc": "tests/python/launcher/test_output.py",
    "launcher/frame_writer.cc": "tests/python/launcher/test_output.py",
    "launcher/input_relay.cc": "tests/python/launcher/test_input.py",
    "launcher/job.cc": "tests/python/launcher/test_exit.py",
    "launcher/output_destination.cc": "tests/python/launcher/test_terminal.py",
    "launcher/output_relay.cc": "tests/python/launcher/test_output.py",
    "launcher/output_sink.cc": "tests/python/launcher/test_output.py",
    "launcher/clean_cache.cc": "tests/python/remote/test_ssh_jobs.py",
    "launcher/run_job.cc": "tests/python/launcher/test_exit.py",
    "launcher/step/join_step.cc": "tests/python/slurm/test_slurm_steps.py",
    "launcher/step/run_task.cc": "tests/python/slurm/test_slurm_steps.py",
    "launcher/step/step_head.cc": "tests/python/slurm/test_slurm_steps.py",
    "launcher/agent_connector.cc": "tests/python/remote/test_ssh_jobs.py",
    "launcher/agent/connect_back.cc": "tests/python/slurm/test_called_agent.py",
    "launcher/slurm/slurm_connector.cc": "tests/python/slurm/test_slurm_allocation.py",
}

# What has one home, so that it can be found: pattern, the files that may, the reason.
ONE_HOME = [
    (r"\b(secure_)?getenv\s*\(", {"base/environment.cc"}, "the environment is read once, as a value"),
    (r"\b(setenv|putenv|unsetenv)\s*\(", set(), "nothing changes its own environment"),
    (r"\bdetached\b", set(), "each co_spawn has a handler that receives the exception"),
    (r"using namespace std;", set(), "names say where they come from"),
    (r"\bspdlog::(info|warn|error|set_level|default_logger)\b", set(), "the logger is ours, not spdlog's default"),
]


def without_comments(text):
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)


def test_no_file_is_too_long():
    suffixes = (".cc", ".hpp", ".h", ".cu", ".py", ".sh", ".cmake")
    files = source_tree.sources(*suffixes, folders=(*source_tree.FOLDERS, "python", "packaging", "benchmarks", "cmake"))
    lengths = {str(path): len(source_tree.read(path).splitlines()) for path in files}
    assert lengths
    assert not {path: lines for path, lines in lengths.items() if lines > MOST_LINES}


def places_for_test_of(source):
    """Where the test of `source` may be: the folders below the first one may be left out."""
    folders = [source.parent, pathlib.PurePath(source.parts[0])]
    return [pathlib.PurePath("tests", folder, source.stem + "_test.cc") for folder in folders]


def untested():
    sources = source_tree.sources(".cc", folders=source_tree.FOLDERS[:7])
    assert sources
    return {str(source) for source in sources if not any((source_tree.ROOT / test).exists() for test in places_for_test_of(source))}


def test_every_python_module_has_a_test_of_its_name():
    tests = {path.stem for path in source_tree.sources(".py", folders=("tests",))}
    modules = [path for path in source_tree.sources(".py", folders=("python/runjob",)) if path.stem != "__init__"]
    assert not [str(path) for path in modules if "test_" + path.stem.lstrip("_") not in tests]


def test_no_two_python_test_files_share_a_name():
    """pytest imports each by its bare name, so the second one would end the whole run."""
    names = [path.name for path in source_tree.sources(".py", folders=("tests",)) if path.name != "conftest.py"]
    assert names
    assert not {name for name in names if names.count(name) > 1}


def test_every_source_has_a_test_of_its_name():
    missing = sorted(untested() - set(TESTED_ELSEWHERE))
    assert not missing


def test_the_exceptions_are_still_needed():
    existing = {source for source in TESTED_ELSEWHERE if (source_tree.ROOT / source).exists()}
    assert existing <= untested(), "these have a test of their name now"
    assert not [test for test in TESTED_ELSEWHERE.values() if not (source_tree.ROOT / test).exists()]


def test_every_cpp_test_is_built():
    lists = {path.parent: source_tree.read(path) for path in source_tree.sources(".txt", folders=("tests",))}
    tests = [path for path in source_tree.sources(".cc", folders=("tests",)) if path.stem.endswith("_test")]
    assert tests

    def built(path):
        return any(
            folder in lists and str(path.relative_to(folder)) in lists[folder].split() for folder in path.parents
        )

    assert not [str(path) for path in tests if not built(path)]


def compile_alone(header):
    """The compiler's complaint about a file that includes nothing but `header`, or ""."""
    if header.suffix == ".h":
        compiler = [os.environ.get("CC", "cc"), "-x", "c", "-std=c11"]
    else:
        compiler = [os.environ.get("CXX", "c++"), "-x", "c++", "-std=c++20"]
    folders = [f"-I{source_tree.ROOT}", f"-I{source_tree.ROOT / 'runtime/include'}"]
    done = subprocess.run(
        [*compiler, "-fsyntax-only", "-Wall", "-Wextra", "-Werror", *folders, "-"],
        input=f'#include "{source_tree.ROOT / header}"\n', capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.stderr if done.returncode else ""


def test_every_header_compiles_alone():
    """One with a source of its name is the first thing that this source includes, so the build has shown it."""
    headers = [path for path in source_tree.sources(".hpp", ".h") if path.parts[0] != "tests"]
    others = [header for header in headers if not (source_tree.ROOT / header.with_suffix(".cc")).exists()]
    assert headers and others

    def is_first(header):
        first = source_tree.includes(source_tree.read(header.with_suffix(".cc")))[:1]
        return first == [(str(header), True)]

    assert not [str(header) for header in headers if header not in others and not is_first(header)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        complaints = [text for text in pool.map(compile_alone, others) if text]
    assert not complaints, "\n".join(complaints)


def test_every_header_is_guarded():
    headers = source_tree.sources(".hpp", ".h")
    assert not [str(path) for path in headers if not re.search(r"^#(pragma once|ifndef \w+_H_)$", source_tree.read(path), re.M)]


@pytest.mark.parametrize("pattern, homes, reason", ONE_HOME)
def test_calls_with_one_home(pattern, homes, reason):
    sources = source_tree.sources(".cc", ".hpp", ".h", folders=source_tree.FOLDERS[:7])
    found = {str(path) for path in sources if re.search(pattern, without_comments(source_tree.read(path)))}
    assert found <= homes, reason


def test_formatting():
    formatter = shutil.which("clang-format-14") or shutil.which("clang-format") or pytest.skip("no clang-format")
    version = subprocess.run([formatter, "--version"], capture_output=True, text=True, check=True).stdout
    if "version 14." not in version:
        pytest.skip(f"the sources are formatted as clang-format 14 does, and this is {version.strip()}")
    files = [source_tree.ROOT / path for path in source_tree.sources(".cc", ".hpp", ".h")]
    done = subprocess.run([formatter, "--dry-run", "--Werror", *files], capture_output=True, text=True, check=False)
    wrong = sorted(set(re.findall(rf"^{re.escape(str(source_tree.ROOT))}/(\S+?):\d+", done.stderr, re.MULTILINE)))
    assert done.returncode == 0 and not wrong, f"clang-format -i {' '.join(wrong)}"
