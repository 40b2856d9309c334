"""The tests of one folder, for `packaging/test.sh SUBJECT`.

    python3 packaging/subjects.py SUBJECT...

A subject is a folder of tests, as CONTRIBUTING.md describes: `hostfile`, `runtime/engine`, `launcher/output`, `torch`, `structure`. It has
the C++ tests of `tests/SUBJECT`, and the Python tests of `tests/SUBJECT`, `tests/python/SUBJECT` and `tests/python/SUBJECT`'s parent in a
file `test_NAME.py`. One line is printed for each step that runs them:

    target NAME          a target that must be built first
    ctest NAME           every case of the program NAME_test
    cases PROGRAM TAGS   the cases of some files of a program, as tags for Catch2's option --filenames-as-tags
    pytest PATH          a folder or a file
    tensorflow           packaging/tensorflow.sh, whose environments have TensorFlow
    install              the wheels must be installed first

An unknown subject ends with status 1 and a message that names the nearest subject and lists all.
"""

import difflib
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
TESTS = ROOT / "tests"
OTHER_NAMES = {"tensorflow": "python/tensorflow", "bindings/tensorflow": "python/tensorflow"}
WITHOUT_BUILD = ("structure", "packaging", "python/wheel")  # these read sources, run scripts, or build with pip
PROGRAMS = ("runjob_command", "runjob_shared", "runjob_probe", "elastic_rank")  # what jobs of tests need; each brings its parts along


def programs():
    """program -> its test files, as the calls of runjob_add_test() list them."""
    found = {}
    for path in sorted(TESTS.rglob("CMakeLists.txt")):
        for name, arguments in re.findall(r"runjob_add_test\((\w+)\s([^)]*)\)", path.read_text()):
            files = (path.parent / word for word in arguments.split() if word.endswith("_test.cc"))
            found[name] = [file for file in files if file.exists()]
    return found


def subjects(of_programs):
    """Every subject there is."""
    files = [file for each in of_programs.values() for file in each] + list(TESTS.rglob("test_*.py"))
    folders = {str(folder.relative_to(TESTS)) for file in files for folder in file.parents if TESTS in folder.parents}
    return sorted(folders | {folder.removeprefix("python/") for folder in folders} | set(OTHER_NAMES))


def python_tests(subject):
    folder = TESTS / "python" / subject
    candidates = (TESTS / subject, folder, folder.with_name(f"test_{folder.name}.py"))
    return [path for path in candidates if path.is_file() or any(path.glob("**/test_*.py"))]


def steps(subject, of_programs):
    """The lines for one subject."""
    subject = OTHER_NAMES.get(subject, subject)
    lines = []
    for name, files in of_programs.items():
        inside = [file for file in files if TESTS / subject in file.parents]
        if not inside:
            continue
        lines.append(f"target {name}_test")
        if len(inside) == len(files):
            lines.append(f"ctest {name}")
        else:
            lines.append(f"cases {name}_test " + ",".join(f"[#{file.stem}]" for file in inside))
    for path in python_tests(subject):
        place = path.relative_to(TESTS)
        if place.parts[0] == "packaging":
            lines.append("install")
        if str(place) in WITHOUT_BUILD:
            pass
        elif place.parts[0] == "python":
            lines += [f"target {name}" for name in PROGRAMS]
        else:
            lines.append("target all")
        if place.parts[:2] == ("python", "tensorflow"):
            lines += ["target runjob_tensorflow", "tensorflow"]
        else:
            lines.append(f"pytest {path.relative_to(ROOT)}")
    return lines


def refusal(subject, known):
    near = difflib.get_close_matches(subject, known, n=1, cutoff=0)
    names = "\n".join(f"    {name}" for name in known)
    return f"there are no tests of '{subject}'; the nearest subject is '{near[0]}'. There are:\n{names}"


def main(arguments):
    of_programs = programs()
    known = subjects(of_programs)
    lines = []
    for argument in arguments:
        subject = argument.strip("/").removeprefix("tests/")
        if subject not in known:
            sys.exit(refusal(argument, known))
        lines += steps(subject, of_programs)
    print(*dict.fromkeys(lines), sep="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
