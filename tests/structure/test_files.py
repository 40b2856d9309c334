"""Rules for each file: size, a test of its own, headers that compile alone, formatting, and calls with one home."""

import collections
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess

import pytest
import class_sizes
import source_tree

# Marks, at which one looks for a concept that is worth a file, a class or a folder of its own. Code is not bent to keep within them: what
# fails is twice as much.
MOST_LINES = 2 * 400
MOST_LINES_OF_TESTS = 2 * 500
MOST_LINES_OF_INTERFACES = 2 * 570  # the public headers, whose contracts are longer than their code
MOST_FUNCTIONS = 2 * 25  # of a class
MOST_MEMBERS = 2 * 25
MOST_FILES = 2 * 30  # of a folder, without the folders in it

# Sources without a C++ test of their name, and the test that runs them as part of real jobs instead: what they do is
# done to processes, signals and pipes.
TESTED_ELSEWHERE = {
    "launcher/agent/leftovers.cc": "tests/python/elastic/test_elastic_jobs.py",
    "launcher/elastic/process_roll.cc": "tests/launcher/elastic/membership_test.cc",
    "launcher/job/make_supervisor.cc": "tests/python/elastic/test_elastic_jobs.py",
    "runtime/c_elastic.cc": "tests/python/elastic/test_elastic.py",
    "runtime/job/notice_watch.cc": "tests/python/elastic/test_elastic.py",
    "base/fmt.cc": "tests/base/error_test.cc",
    "rendezvous/asio.cc": "tests/rendezvous/server/http_session_test.cc",
    "runtime/c_timeline.cc": "tests/runtime/timeline/timeline_test.cc",
    "runtime/mpi_start/pmix_store.cc": "tests/python/mpi/test_mpirun.py",
    "runtime/probe/probe.cc": "tests/python/test_probe.py",
    "runtime/c_collectives.cc": "tests/runtime/c_api_test.cc",
    "runtime/c_operation.cc": "tests/runtime/c_api_test.cc",
    "bindings/tensorflow/c_interface.cc": "tests/python/tensorflow/test_kernels.py",
    "bindings/tensorflow/collective_kernels.cc": "tests/python/tensorflow/test_tensorflow_operations.py",
    "bindings/tensorflow/completion_thread.cc": "tests/python/tensorflow/test_tensorflow_operations.py",
    "bindings/tensorflow/op_definitions.cc": "tests/python/tensorflow/test_tensorflow_operations.py",
    "bindings/tensorflow/operation.cc": "tests/python/tensorflow/test_nodes.py",
    "bindings/tensorflow/place.cc": "tests/python/tensorflow/test_tensorflow_operations.py",
    "bindings/tensorflow/plugin.cc": "tests/python/tensorflow/test_kernels.py",
    "bindings/tensorflow/running_operation.cc": "tests/python/tensorflow/test_tensorflow_operations.py",
    "bindings/tensorflow/tensors.cc": "tests/python/tensorflow/test_tensorflow_matrix.py",
    "runtime/c_devices.cc": "tests/runtime/collectives/nccl/nccl_backend_test.cc",
    "runtime/backends/late_device_backend.cc": "tests/runtime/collectives/nccl/nccl_backend_test.cc",
    "runtime/collectives/cuda/driver.cc": "tests/runtime/collectives/nccl/nccl_backend_test.cc",
    "runtime/collectives/cuda/flight_record.cc": "tests/runtime/collectives/nccl/flight_record_test.cc",
    "runtime/collectives/cuda/gpu.cc": "tests/runtime/collectives/nccl/nccl_backend_test.cc",
    "runtime/collectives/cuda/gpu_memory.cc": "tests/runtime/collectives/nccl/nccl_backend_test.cc",
    "runtime/collectives/cuda/work.cc": "tests/runtime/collectives/nccl/nccl_backend_test.cc",
    "runtime/collectives/nccl/communicator.cc": "tests/runtime/collectives/nccl/nccl_backend_test.cc",
    "runtime/collectives/nccl/nccl_library.cc": "tests/runtime/collectives/nccl/nccl_backend_test.cc",
    "runtime/collectives/nccl/plugin.cc": "tests/runtime/collectives/nccl/nccl_backend_test.cc",
    "cli/command.cc": "tests/python/test_cli.py",
    "cli/main.cc": "tests/python/launcher/test_exit.py",
    "cli/main_remote.cc": "tests/python/remote/test_ssh_jobs.py",
    "launcher/agent/guard.cc": "tests/python/launcher/test_exit.py",
    "launcher/agent/host_facts.cc": "tests/python/launcher/test_environment.py",
    "launcher/agent/input_pipe.cc": "tests/python/launcher/test_input.py",
    "launcher/agent/main.cc": "tests/python/launcher/test_exit.py",
    "launcher/agent/run_agent.cc": "tests/python/launcher/test_exit.py",
    "launcher/agent/stack_collector.cc": "tests/python/launcher/test_stack_traces.py",
    "launcher/remote/channel_ssh_program.cc": "tests/python/remote/test_ssh_jobs.py",
    "launcher/job/channel_local.cc": "tests/python/launcher/test_exit.py",
    "launcher/channel/fd_channel.cc": "tests/python/launcher/test_output.py",
    "launcher/job/input_relay.cc": "tests/python/launcher/test_input.py",
    "launcher/job/rank_launch.cc": "tests/launcher/job/job_test.cc",
    "launcher/agent/rank_processes.cc": "tests/launcher/agent/agent_test.cc",
    "launcher/agent/rendezvous_relay.cc": "tests/launcher/agent/agent_test.cc",
    "launcher/srun_task/step_gathering.cc": "tests/launcher/srun_task/step_head_test.cc",
    "launcher/output/output_destination.cc": "tests/python/launcher/test_terminal.py",
    "launcher/output/output_sink.cc": "tests/python/launcher/test_output.py",
    "launcher/remote/clean_cache.cc": "tests/python/remote/test_ssh_jobs.py",
    "launcher/job/run_job.cc": "tests/python/launcher/test_exit.py",
    "launcher/srun_task/run_task.cc": "tests/python/slurm/test_slurm_steps.py",
    "launcher/remote/agent_connector.cc": "tests/python/remote/test_ssh_jobs.py",
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

    def most(path):
        if path.startswith("runtime/include/"):
            return MOST_LINES_OF_INTERFACES
        return MOST_LINES_OF_TESTS if path.startswith("tests/") else MOST_LINES

    assert not {path: lines for path, lines in lengths.items() if lines > most(path)}


def test_no_folder_is_too_flat():
    suffixes = (".cc", ".hpp", ".h", ".cu", ".py", ".sh", ".txt", ".md")
    folders = (*source_tree.FOLDERS, "python", "packaging", "cmake", "docs")
    counts = collections.Counter(str(path.parent) for path in source_tree.sources(*suffixes, folders=folders))
    assert len(counts) > 50
    assert not {folder: count for folder, count in counts.items() if count > MOST_FILES}


def test_no_class_is_too_large():
    """Plain data, which has no functions, may have as many members as it needs."""
    headers = [path for path in source_tree.sources(".cc", ".hpp", ".h") if path.parts[0] not in ("tests", "benchmarks")]
    sizes = [(str(path), size) for path in headers for size in class_sizes.classes(source_tree.read(path))]
    assert len(sizes) > 100
    assert not [
        (path, size)
        for path, size in sizes
        if size.functions > MOST_FUNCTIONS or (size.functions and size.members > MOST_MEMBERS)
    ]


def test_declarations_are_counted():
    text = """
    class Data { int a_; };  // int b_;
    class Work final : public Base {
     public:
      explicit Work(int a) : a_{a}, b_(2) { run(); }
      Work(const Work&) = delete;
      bool operator==(const Work&) const = default;
      std::string name() const { return "}"; }
      static constexpr int kMost = 3;
     private:
      struct Inner { int c = 0; std::vector<int> d{}; };
      enum class Phase { kOne, kTwo };
      std::function<void(int)> callback_;
      int a_ GUARDED_BY(mutex_) = 0;
      int b_{1};
      int (*pointer_)(int);
    };
    """
    sizes = [(size.name, size.functions, size.members) for size in class_sizes.classes(text)]
    assert sizes == [("Data", 0, 1), ("Work", 2, 4), ("Inner", 0, 2)]


def places_for_test_of(source):
    """Where the test of `source` may be: the folders below the first one may be left out."""
    folders = [source.parent, pathlib.PurePath(source.parts[0])]
    return [pathlib.PurePath("tests", folder, source.stem + "_test.cc") for folder in folders]


def untested():
    sources = source_tree.sources(".cc", folders=source_tree.OWN_FOLDERS)
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
    """One with a source of its name is the first thing that this source includes, so a build without batches shows it: `debug`."""
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
    sources = source_tree.sources(".cc", ".hpp", ".h", folders=source_tree.OWN_FOLDERS)
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
