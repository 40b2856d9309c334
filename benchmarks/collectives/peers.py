"""What is measured, each found where it is installed, or absent with a reason."""

import dataclasses
import pathlib
import re

from benchmarks.collectives import cases, installed, mpi_peers

ROOT = pathlib.Path(__file__).resolve().parents[2]
RANKS = pathlib.Path(__file__).resolve().parent / "programs/ranks.py"
LIMITS = "limits"
OURS = "runjob"
BEFORE = "runjob-before"  # another build
OURS_IN_TORCH = "runjob-torch"
DISTRIBUTED = "torch.distributed"  # an interface
HOROVOD_CYCLES_MS = ("1", "0.1", "0")


@dataclasses.dataclass(frozen=True)
class Peer:
    """One library with its settings. `launch(np)`: the words before the program; what is not in `environment` is inherited.

    `reports`: a pattern that the name and version must match which the library gives itself when the program runs.
    `library`: the version and the file by which it was recognised before, for the report.
    """

    name: str
    interface: str  # native, torch or torch.distributed; limits: the machine
    launch: object
    program: tuple
    environment: dict = dataclasses.field(default_factory=dict)
    operations: tuple = ()  # the only ones that its settings are about; none: all
    reports: str = ""
    library: str = ""

    def measures(self, case):
        if self.name == LIMITS:
            return bool(case.limit_sizes())
        if case.op == cases.MESSAGES or case.mode == "future":
            return self.interface == DISTRIBUTED
        return not self.operations or case.op in self.operations

    def command(self, np, words):
        return [*self.launch(np), *self.program, *words]

    def described(self):
        """For the report: what was run, and with which settings."""
        return {"command": " ".join(map(str, self.command("NP", ["..."]))), "environment": self.environment, "library": self.library}


def limits(arguments):
    program = arguments.bin / "collectives_limits"
    return Peer(LIMITS, LIMITS, lambda np: [str(program), "--np", str(np)], ())


def start_with(folder):
    return lambda np: [str(folder / "runjob"), "-np", str(np)]


def start_with_runjob(arguments):
    return start_with(arguments.bin)


def runjob(arguments):
    """This build, and the other one if there is one."""
    builds = {OURS: arguments.bin, BEFORE: arguments.before}
    return [Peer(name, "native", start_with(folder), (str(folder / "collectives_benchmark"),)) for name, folder in builds.items() if folder]


def runjob_otherwise(arguments):
    """With buffers in symmetric memory, and without reading the other ranks' ordinary memory."""
    start, program = start_with_runjob(arguments), str(arguments.bin / "collectives_benchmark")
    moving = tuple(op for op in cases.OPERATIONS if op != "barrier")
    return [
        Peer("runjob-symmetric", "native", start, (program, "--memory", "symmetric"), operations=moving),
        Peer("runjob-no-cma", "native", start, (program,), {"RUNJOB_CMA": "0"}, moving),
    ]


def with_torch(arguments):
    """runjob.torch, and torch.distributed over runjob and over Gloo, whose ranks runjob starts too: launchers play no part here."""
    python, start = arguments.torch_python, start_with_runjob(arguments)
    if not installed.has_module(python, "torch"):
        return [], [f"{OURS_IN_TORCH}, torch-runjob and torch-gloo: {python} has no torch: name one that has with --torch-python"]
    program, ours = (python, str(RANKS), "--library"), {"PYTHONPATH": str(ROOT / "python")}
    found = [
        Peer(OURS_IN_TORCH, "torch", start, (*program, "runjob.torch"), ours),
        Peer("torch-runjob", DISTRIBUTED, start, (*program, "runjob"), ours),
        Peer("torch-gloo", DISTRIBUTED, start, (*program, "gloo")),
    ]
    return found, []


def horovod(arguments):
    """Horovod itself, over Gloo with its usual and with shorter cycles, and over MPI."""
    python = arguments.horovod_python
    found, reason = installed.horovod(python)
    if found is None:
        return [], [reason]
    program = (python, str(RANKS), "--library", "horovod.torch")

    def peer(name, controller, environment):
        return Peer(name, "torch", lambda np: [found.command, f"--{controller}", "-np", str(np)], program, environment, library=found.library)

    over_gloo = [peer(f"horovod-gloo-{cycle}ms", "gloo", {"HOROVOD_CYCLE_TIME": cycle}) for cycle in HOROVOD_CYCLES_MS]
    return [*over_gloo, peer("horovod-mpi", "mpi", {"HOROVOD_CYCLE_TIME": "1"})], []


def find(arguments, say):
    """Those that are here, runjob first, the limits last, and the reasons why the others are not."""
    for folder in filter(None, (arguments.bin, arguments.before)):
        missing = [name for name in ("runjob", "collectives_benchmark", "collectives_limits") if not (folder / name).exists()]
        if missing:
            raise FileNotFoundError(f"no {' and no '.join(missing)} in {folder}; build them with\n    cmake --build --preset release "
                                    "--target runjob_command runjob-agent collectives_benchmark collectives_limits")  # fmt: skip
    if arguments.peers == "none":
        return [*runjob(arguments), limits(arguments)], []
    found, absent = runjob(arguments), []
    for more, reasons in ((runjob_otherwise(arguments), []), with_torch(arguments), mpi_peers.find(arguments, Peer, say), horovod(arguments)):
        found += more
        absent += reasons
    return select([*found, limits(arguments)], absent, arguments.peers)


def select(found, absent, chosen):
    """Returns our builds, the limits and the chosen ones of what was found, and a reason for each chosen one that is absent."""
    if chosen == "all":
        return found, absent
    names = chosen.split(",")
    missing = [name for name in names if name not in [peer.name for peer in found]]
    reasons = [next((text for text in absent if re.match(rf".*\b{family(name)}\b.*:", text)), f"{name}: no such peer") for name in missing]
    return [peer for peer in found if peer.name in (*names, OURS, BEFORE, LIMITS)], sorted(set(reasons))


def family(name):
    """What a reason for absence calls it: the settings are left out."""
    return name if name in (OURS_IN_TORCH, "torch-runjob", "torch-gloo") else name.partition("-")[0]
