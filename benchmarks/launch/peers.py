"""The launchers that are compared, each found where it is installed, or absent with a reason."""

import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2]))
from benchmarks.collectives import installed  # noqa: E402


@dataclasses.dataclass(frozen=True)
class Peer:
    """One launcher: how it starts `np` processes, and how it starts them with tagged lines."""

    name: str
    version: str
    start: list  # its words before the number of processes
    tag: list | None  # the words that make it tag each line; None when it does not relay output
    tag_pattern: bytes  # what a tag looks like, with the rank as a group
    rank_variable: str
    before_command: list = dataclasses.field(default_factory=list)

    def command(self, np, program, tagged=False):
        tag = (self.tag or []) if tagged else []
        return [*self.start, str(np), *tag, *self.before_command, *program]


def first_line(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    lines = (done.stdout + done.stderr).strip().splitlines()
    return lines[0] if lines else ""


def runjob(path):
    if not shutil.which(path):
        return None, f"{path} is not there: build it first"
    return Peer("runjob", first_line(path, "--version"), [path, "-np"], [], rb"\[(\d+)\]<stdout>:", "RUNJOB_RANK"), ""


def open_mpi():
    path = shutil.which("mpirun.openmpi") or shutil.which("mpirun")
    if not path or not re.search("Open MPI|OpenRTE", version := first_line(path, "--version")):
        return None, "no mpirun of Open MPI on the PATH (Debian: openmpi-bin)"
    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    version = "Open MPI " + version.split()[-1]
    start = [path, *root, "--oversubscribe", "-np"]
    return Peer("mpirun", version, start, ["--tag-output"], rb"\[\d+,(\d+)\]<stdout>:", "OMPI_COMM_WORLD_RANK"), ""


def mpich(folder):
    path = shutil.which("mpiexec.hydra") or shutil.which(str(folder / "bin/mpiexec"))
    if not path:
        return None, f"no mpiexec.hydra on the PATH and none in {folder}: --install-mpich puts the mpich wheel there"
    info = subprocess.run([path, "-info"], capture_output=True, text=True, check=False).stdout
    version = re.search(r"Version:\s*(\S+)", info)
    version = "MPICH " + (version.group(1) if version else "unknown")
    return Peer("mpiexec", version, [path, "-n"], ["-prepend-rank"], rb"\[(\d+)\] ", "PMI_RANK"), ""


def install_mpich(folder):
    """A virtual environment with the mpich wheel, whose mpiexec is Hydra."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    subprocess.run([folder / "bin/pip", "install", "--quiet", "mpich"], check=True)


def torchrun(python):
    if not shutil.which(python):
        return None, f"{python} is not there"
    version = first_line(python, "-c", "import importlib.metadata as m; print(m.version('torch'))")
    if not re.match(r"\d", version):
        return None, f"{python} has no torch: name one that has with --torch-python"
    start = [python, "-m", "torch.distributed.run", "--standalone", "--no-python", "--nproc-per-node"]
    return Peer("torchrun", "PyTorch " + version, start, None, b"", "RANK"), ""


def horovodrun():
    path = shutil.which("horovodrun")
    if not path:
        return None, "no horovodrun on the PATH"
    python = str(pathlib.Path(path).resolve().parent / "python")
    answers = [installed.horovod(python, framework, "put its horovodrun on the PATH") for framework in ("torch", "tensorflow")]
    found, reason = next((each for each in answers if each[0]), answers[0])
    if found is None:
        return None, reason
    return Peer("horovodrun", found.library, [path, "-np"], [], rb"\[(\d+)\]<stdout>:", "HOROVOD_RANK"), ""


def find(arguments):
    """The peers that are here, runjob first, and the reasons why the others are not."""
    mpich_folder = pathlib.Path(arguments.mpich).resolve()
    if arguments.install_mpich and not (mpich_folder / "bin/mpiexec").exists():
        install_mpich(mpich_folder)
    searches = [
        runjob(arguments.runjob), open_mpi(), mpich(mpich_folder), torchrun(arguments.torch_python), horovodrun(),
    ]  # fmt: skip
    return [peer for peer, _ in searches if peer], [reason for _, reason in searches if reason]
