"""What the structural tests ask about the source tree: its files, their includes, and what may include what."""

import dataclasses
import itertools
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
OWN_FOLDERS = ("base", "hostfile", "rendezvous", "sealed", "launcher", "runtime", "bindings", "cli")  # of the product
FOLDERS = (*OWN_FOLDERS, "tests", "examples", "benchmarks")
SYSTEM_FOLDERS = ("arpa", "asm", "linux", "net", "netinet", "sys")
# POSIX's and Linux's headers without a folder. What is missing here is a library that has no home yet, or a line to add.
SYSTEM_HEADERS = frozenset(
    name + ".h"
    for name in """assert cpuid ctype dirent dlfcn elf endian errno execinfo fcntl fnmatch ftw glob grp ifaddrs immintrin inttypes langinfo limits link
    locale malloc mntent netdb poll pthread pty pwd sched semaphore signal spawn stdarg stdbool stddef stdint stdio stdlib
    string strings sysexits syslog termios time unistd utmp wordexp""".split()
)
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def sources(*suffixes, folders=FOLDERS):
    """Paths relative to the root, sorted."""
    found = (path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in suffixes)
    return sorted(path.relative_to(ROOT) for path in found)


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


def includes(text):
    """The headers that `text` includes, as (header, is_quoted)."""
    return [(header, quote == '"') for quote, header in INCLUDE.findall(text)]


@dataclasses.dataclass(frozen=True)
class Table:
    """The two tables of docs/developers/architecture.md."""

    folders: dict  # folder -> the folders and headers that it may include
    libraries: dict  # prefix -> its home folders, or ("anywhere",)

    def folder_of(self, path):
        """The row that `path` belongs to: its own folder. A folder without a row of its own has none."""
        return path.rpartition("/")[0]

    def allowed(self, path):
        """The folders and headers that `path` may include; None when the table does not name its folder."""
        if path.parts[0] != "tests":
            return self.folders.get(self.folder_of(str(path)))
        rows = [row for row in self.folders if row.split("/")[0] == path.parts[1]] if len(path.parts) > 2 else []
        return tuple(target for row in rows for target in (row, *self.folders[row])) if rows else ()

    def objection(self, path, header, quoted):
        """Why `path` may not include `header`; None when it may."""
        if header.startswith("runjob/"):
            allowed = path.parts[0] in ("runtime", "bindings", "examples", "benchmarks", "tests")
            return None if allowed else "the runtime's interface is for the runtime and its users"
        if quoted:
            return self._objection_to_ours(path, header)
        return self._objection_to_theirs(path, header)

    def _objection_to_ours(self, path, header):
        target, slash, _ = header.rpartition("/")
        if not slash:
            return "includes name the folder: \"folder/header.hpp\""
        is_test = path.parts[0] == "tests"
        if header.startswith("tests/"):
            return None if is_test else "only tests include tests"
        if target not in self.folders:
            return f"'{target}' is no folder of the table"
        allowed = self.allowed(path)
        if allowed is None:
            return f"'{self.folder_of(str(path))}' is no folder of the table"
        if is_test and not allowed or target == self.folder_of(str(path)) or target in allowed or header in allowed:
            return None
        return f"the table has no arrow from {self.folder_of(str(path))} to {header}"

    def _objection_to_theirs(self, path, header):
        folder, slash, _ = header.partition("/")
        library = folder + slash  # a library without a folder of its own is known by its header
        homes = self.libraries.get(library)
        if homes is None and not slash:
            known = "." not in header or header in SYSTEM_HEADERS  # the C++ library's have no suffix
            return None if known else "neither a system header nor a library of the table"
        if homes is None:
            return None if folder in SYSTEM_FOLDERS else "a library that the table does not name"
        own = path.parts[1:] if path.parts[0] == "tests" and len(path.parts) > 2 else path.parts
        places = ("/".join(path.parts), "/".join(own))
        if homes == ("anywhere",) or any(place.startswith(home + "/") for place in places for home in homes):
            return None
        return f"{folder.removesuffix('.h')} has its home in {', '.join(homes)}"


def table_rows(markdown, column):
    """The cells of the table whose first column is called `column`, row by row. ValueError without one."""
    lines = iter(markdown.splitlines())
    if not any(re.match(rf"\| {column} \|.*\|$", line) for line in lines):
        raise ValueError(f"no table that begins with a column '{column}'")
    next(lines)  # the line of dashes
    for line in itertools.takewhile(lambda line: line.startswith("|"), lines):
        yield [cell.strip() for cell in line.strip("|").split("|")]


def names_in(cell):
    return tuple(re.findall(r"`([^`]+)`", cell)) or ((cell,) if cell else ())


def read_table(markdown):
    """The tables of folders and libraries in docs/developers/architecture.md."""
    folders = {names_in(folder)[0]: names_in(allowed) for folder, _, allowed in table_rows(markdown, "folder")}
    libraries = {names_in(prefix)[0]: names_in(homes) for _, prefix, homes in table_rows(markdown, "library")}
    return Table(folders, libraries)


def read_packages(markdown):
    """The table of Python packages in docs/developers/architecture.md: package -> the packages that it may import."""
    return {names_in(package)[0]: names_in(allowed) for package, _, allowed in table_rows(markdown, "package")}
