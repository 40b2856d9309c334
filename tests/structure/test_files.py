"""Rules for each file: size, headers that compile alone, formatting, and calls with one home."""

import concurrent.futures
import os
import re
import shutil
import subprocess

import pytest
import class_sizes
import function_sizes
import marks
import source_tree

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


#: Functions that are tables: a row for each option.
TABLES = ("cli/options/option_table.cc own_options()",)


@pytest.mark.parametrize("kind", [marks.files, marks.folders, marks.classes, marks.functions])
def test_nothing_is_twice_as_large_as_its_mark(kind):
    sizes = list(kind())
    assert len(sizes) > 50
    assert not [each for each in sizes if each.size > 2 * each.mark and each.place not in TABLES]


def test_the_report_lists_what_is_over_its_mark_the_largest_first():
    sizes = [marks.Measured("lines of files", name, size, 400) for name, size in (("a.cc", 400), ("b.cc", 401), ("c.cc", 500))]
    assert marks.report(sizes) == ["lines of files over 400: 2", "      500  c.cc", "      401  b.cc"]


def test_lines_of_functions_are_counted():
    text = """namespace {

int one() { return 1; }

template <class T>
int several(T a,
            int b) {
  if (a) {
    b();
  }
  return b;
}

struct S {
  S() : a_(1) {
    run();
  }
  void declared();
};

}  // namespace

void Job::on_frame(int host) {
  call([&] {
    host();
  });
}
"""
    assert function_sizes.functions(text) == [("several", 7), ("S", 3), ("Job::on_frame", 5)]


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


def test_no_two_python_test_files_share_a_name():
    """pytest imports each by its bare name, so the second one would end the whole run."""
    names = [path.name for path in source_tree.sources(".py", folders=("tests",)) if path.name != "conftest.py"]
    assert names
    assert not {name for name in names if names.count(name) > 1}


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
