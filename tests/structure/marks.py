"""The sizes at which one looks for a concept that is worth a file, a class, a function or a folder of its own. Code is not bent to keep within
them: a report lists what is over, and a test fails only at twice as much."""

import collections
import dataclasses

import class_sizes
import function_sizes
import source_tree

LINES = 400  # of a file
LINES_OF_TESTS = 500
LINES_OF_INTERFACES = 570  # the public headers, whose contracts are longer than their code
LINES_OF_FUNCTIONS = 40
FUNCTIONS = 25  # of a class
MEMBERS = 25  # plain data, which has no functions, may have as many members as it needs
FILES = 30  # of a folder, without the folders in it


@dataclasses.dataclass(frozen=True)
class Measured:
    """One size of one thing."""

    what: str  # "lines of files", "functions of classes"
    place: str
    size: int
    mark: int

    def times(self):
        return self.size / self.mark


def files():
    suffixes = (".cc", ".hpp", ".h", ".cu", ".py", ".sh", ".cmake")
    for path in source_tree.sources(*suffixes, folders=(*source_tree.FOLDERS, "python", "packaging", "cmake")):
        name = str(path)
        mark = LINES_OF_TESTS if name.startswith("tests/") else LINES_OF_INTERFACES if name.startswith("runtime/include/") else LINES
        yield Measured("lines of files", name, len(source_tree.read(path).splitlines()), mark)


def folders():
    suffixes = (".cc", ".hpp", ".h", ".cu", ".py", ".sh", ".txt", ".md")
    every = source_tree.sources(*suffixes, folders=(*source_tree.FOLDERS, "python", "packaging", "cmake", "docs"))
    for folder, count in collections.Counter(str(path.parent) for path in every).items():
        yield Measured("files of folders", folder, count, FILES)


def product():
    return [path for path in source_tree.sources(".cc", ".hpp", ".h") if path.parts[0] not in ("tests", "benchmarks")]


def classes():
    for path in product():
        for size in class_sizes.classes(source_tree.read(path)):
            if size.functions:
                yield Measured("functions of classes", f"{path} {size.name}", size.functions, FUNCTIONS)
                yield Measured("members of classes", f"{path} {size.name}", size.members, MEMBERS)


def functions():
    for path in product():
        for name, lines in function_sizes.functions(source_tree.read(path)):
            yield Measured("lines of functions", f"{path} {name}()", lines, LINES_OF_FUNCTIONS)


def all_sizes():
    return [*files(), *folders(), *classes(), *functions()]


def report(sizes):
    """Lines that list what is over its mark, the largest first."""
    lines = []
    for what in dict.fromkeys(each.what for each in sizes):
        over = sorted((each for each in sizes if each.what == what and each.size > each.mark), key=Measured.times, reverse=True)
        lines.append(f"{what} over {'/'.join(str(mark) for mark in sorted({each.mark for each in sizes if each.what == what}))}: {len(over)}")
        lines += [f"    {each.size:5}  {each.place}" for each in over]
    return lines
