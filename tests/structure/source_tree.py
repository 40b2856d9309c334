"""What the structural tests ask about the source tree: its files, their includes, and what may include what."""

import dataclasses
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("base", "hostfile", "rendezvous", "launcher", "runtime", "tensorflow_operations", "cli", "tests", "examples")
SYSTEM_FOLDERS = ("arpa", "asm", "linux", "net", "netinet", "sys")
# POSIX's and Linux's headers without a folder. What is missing here is a library that has no home yet, or a line to add.
SYSTEM_HEADERS = frozenset(
    name + ".h"
    for name in """assert cpuid ctype dirent dlfcn elf endian errno fcntl fnmatch ftw glob grp ifaddrs immintrin inttypes langinfo limits link
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
    """The two tables of docs/architecture.md."""

    folders: dict  # folder -> the folders and headers that it may include
    libraries: dict  # prefix -> its home folders, or ("anywhere",)

    def objection(self, path, header, quoted):
        """Why `path` may not include `header`; None when it may."""
        folder = path.parts[1] if path.parts[0] == "tests" and len(path.parts) > 2 else path.parts[0]
        if header.startswith("runjob/"):
            allowed = folder in ("runtime", "tensorflow_operations", "examples") or path.parts[0] == "tests"
            return None if allowed else "the runtime's interface is for the runtime and its users"
        if quoted:
            return self._objection_to_ours(path, folder, header)
        return self._objection_to_theirs(path, header)

    def _objection_to_ours(self, path, folder, header):
        target = header.split("/")[0]
        if "/" not in header:
            return "includes name the folder: \"folder/header.hpp\""
        if target == "tests":
            return None if path.parts[0] == "tests" else "only tests include tests"
        if target not in self.folders:
            return f"'{target}' is no folder of the table"
        if target == folder:
            return None
        if folder not in self.folders:
            return None if path.parts[0] == "tests" else f"'{folder}' is no folder of the table"
        if target in self.folders[folder] or header in self.folders[folder]:
            return None
        return f"the table has no arrow from {folder} to {header}"

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


def read_table(markdown):
    """The tables of docs/architecture.md. ValueError when they are not there in the form that is expected."""
    folders, libraries = {}, {}
    for kind, rows in (("folder", folders), ("library", libraries)):
        lines = iter(markdown.splitlines())
        if not any(re.match(rf"\| {kind} \|.*\|$", line) for line in lines):
            raise ValueError(f"no table that begins with a column '{kind}'")
        next(lines)  # the line of dashes
        for line in lines:
            if not line.startswith("|"):
                break
            first, second, third = (cell.strip() for cell in line.strip("|").split("|"))
            values = tuple(re.findall(r"`([^`]+)`", third)) or ((third,) if third else ())
            (key,) = re.findall(r"`([^`]+)`", first if kind == "folder" else second)
            rows[key] = values
    return Table(folders, libraries)
