"""What a Python interpreter has installed."""

import dataclasses
import pathlib
import shutil
import subprocess

#: Prints Horovod's version, and the file of its library, which the import of a framework's module has mapped. runjob's package of the same
#: name, version and command has no such library, and prints its own file.
HOROVOD = """
import re, horovod, horovod.{0}
found = re.search(r"/\\S*/horovod/{0}/mpi_lib\\w*\\.\\S*so$", open("/proc/self/maps").read(), re.MULTILINE)
print(horovod.__version__, found.group() if found else "", horovod.__file__, sep="\\n")
"""


@dataclasses.dataclass(frozen=True)
class Horovod:
    """Horovod itself: its command `horovodrun`, and its version with the file of its library, which prove that it is Horovod."""

    command: str
    library: str


def run_code(python, code):
    """The finished process; None where there is no such interpreter."""
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=False) if shutil.which(python) else None


def has_module(python, module):
    done = run_code(python, f"import {module}")
    return done is not None and done.returncode == 0


def horovod(python, framework="torch", remedy="name another Python with --horovod-python"):
    """Horovod for the framework; None, and the reason, when it is not there or another package has its name."""
    command = pathlib.Path(python).parent / "horovodrun"
    done = run_code(python, HOROVOD.format(framework))
    if done is None or done.returncode or not command.exists():
        return None, f"horovod: {python} has no horovod.{framework} with horovodrun beside it: {remedy}"
    version, library, package = done.stdout.splitlines()[-3:]
    if not library:
        return None, (f"horovod: {package} calls itself horovod {version} and is not Horovod: it loads no library "
                      f"horovod/{framework}/mpi_lib*.so; benchmarks/horovod.sh builds Horovod; {remedy}")  # fmt: skip
    return Horovod(str(command), f"Horovod {version}, {library}"), ""
