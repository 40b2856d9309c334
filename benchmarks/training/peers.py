"""What trains, each found where it is installed, or absent with a reason."""

import dataclasses
import pathlib

from benchmarks.collectives import installed

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = pathlib.Path(__file__).resolve().parent / "programs/train.py"
OURS = "runjob"
NAMES = (OURS, "alone", "ddp", "horovod")


@dataclasses.dataclass(frozen=True)
class Peer:
    """One library. `launch(np)`: the words before the program. `never_rests`: it works between the turns, and is stopped then."""

    name: str
    launch: object
    python: str
    environment: dict = dataclasses.field(default_factory=dict)
    never_rests: bool = False

    def command(self, np, model, socket):
        return [*self.launch(np), self.python, str(PROGRAM), self.name, model, str(socket)]


def with_runjob(arguments):
    """runjob, no communication at all, and DistributedDataParallel over Gloo: runjob starts the ranks of all three."""

    def launch(np):
        return [str(arguments.bin / "runjob"), "-np", str(np)]

    ours = {"PYTHONPATH": str(ROOT / "python"), "RUNJOB_LIBRARY": str(arguments.bin.parent / "lib/librunjob.so")}
    python = arguments.python
    return [Peer(OURS, launch, python, ours), Peer("alone", launch, python), Peer("ddp", launch, python)]


def horovod(arguments):
    """Horovod over Gloo, at its own settings. Its thread wakes every millisecond."""
    python = arguments.horovod_python
    command, reason = installed.horovodrun(python)
    if command is None:
        return [], [reason]
    return [Peer("horovod", lambda np: [str(command), "--gloo", "-np", str(np)], python, never_rests=True)], []


def find(arguments):
    """Those of --peers that are here, and the reasons why the others are not."""
    if not (arguments.bin / "runjob").exists():
        raise FileNotFoundError(f"no runjob in {arguments.bin}; build it with cmake --build --preset release --target runjob_command "
                                "runjob-agent runjob_shared")  # fmt: skip
    if not installed.has_module(arguments.python, "torch"):
        raise FileNotFoundError(f"{arguments.python} has no torch: name one that has with --python")
    found, absent = with_runjob(arguments), []
    if "horovod" in arguments.peers:
        more, absent = horovod(arguments)
        found += more
    return [peer for peer in found if peer.name in arguments.peers], absent
