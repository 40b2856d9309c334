"""What trains, each found where it is installed, or absent with a reason."""

import dataclasses
import pathlib
import socket

from benchmarks.collectives import installed
from runjob.benchmark.arguments import NETWORKS

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"
OURS = "runjob"
NAMES = (OURS, "before", "alone", "paced", "ddp", "ddp-runjob", "fsdp", "fsdp-runjob", "mwms", "horovod")
#: torch.distributed over runjob, and the same over Gloo.
PAIRS = (("ddp-runjob", "ddp"), ("fsdp-runjob", "fsdp"))

#: The environment of every rank: one thread, and a C library that keeps freed memory. By default it may give the memory of a step back
#: to the kernel and take it again in the next step, which depends on where blocks lie and takes up to a twentieth of the step.
VARIABLES = {"OMP_NUM_THREADS": "1", "MALLOC_TRIM_THRESHOLD_": str(4 << 30), "MALLOC_MMAP_THRESHOLD_": str(1 << 30)}

#: The networks that each framework trains.
MODELS = {"torch": (*NETWORKS, "loop-hooks", "loop-after"), "tensorflow": ("keras-cnn", "tf-loop")}


@dataclasses.dataclass(frozen=True)
class Peer:
    """One library, with a framework. `launch(np)`: the words before the program. `never_rests`: it works between the turns, and is stopped
    then."""

    name: str
    framework: str
    launch: object
    python: str
    environment: dict = dataclasses.field(default_factory=dict)
    never_rests: bool = False
    library: str = ""  # its version and file, for the report

    def command(self, np, model, socket):
        return [*self.launch(np), self.python, str(PROGRAMS / f"train_{self.framework}.py"), self.name, model, str(socket)]


def with_runjob(arguments, framework, python):
    """What runjob starts the ranks of: runjob, another checkout of it, no communication at all, and what the framework has itself."""

    def launch(np, bin=arguments.bin):
        words = [str(bin / "runjob"), "-np", str(np)]
        if not arguments.hosts:
            return words
        slots = ",".join(f"s{host + 1}:{-(-np // arguments.hosts)}" for host in range(arguments.hosts))
        sent = [*VARIABLES, "PYTHONPATH", "RUNJOB_LIBRARY"]
        return [*words, "-H", slots, *(word for name in sent for word in ("-x", name))]

    def launch_workers(np):
        return [*launch(np), "env", "WORKERS=" + ",".join(f"127.0.0.1:{port}" for port in free_ports(np))]

    ours = {"PYTHONPATH": str(ROOT / "python"), "RUNJOB_LIBRARY": str(arguments.bin.parent / "lib/librunjob.so")}
    none = dict.fromkeys(ours, "")  # so that -x finds them
    both = [Peer(OURS, framework, launch, python, ours), Peer("alone", framework, launch, python, none)]
    if arguments.before:
        build = arguments.before / "build/release"
        theirs = {"PYTHONPATH": str(arguments.before / "python"), "RUNJOB_LIBRARY": str(build / "lib/librunjob.so")}
        both.append(Peer("before", framework, lambda np: launch(np, build / "bin"), python, theirs))
    if framework == "torch":
        names = {"paced": ours, **{name: settings for pair in PAIRS for name, settings in zip(pair, (ours, none))}}
        return [*both, *(Peer(name, framework, launch, python, settings) for name, settings in names.items())]
    return [*both, Peer("mwms", framework, launch_workers, python, none)]


def free_ports(count):
    """Ports that nobody listens at now."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def horovod(framework, python, option):
    """Horovod over Gloo, at its own settings. Its thread wakes every millisecond."""
    found, reason = installed.horovod(python, framework, f"name another Python with {option}")
    if found is None:
        return [], [reason]
    launch = lambda np: [found.command, "--gloo", "-np", str(np)]  # noqa: E731
    return [Peer("horovod", framework, launch, python, never_rests=True, library=found.library)], []


def find(arguments, framework):
    """Those of --peers that are here for a framework, and the reasons why the others are not."""
    if not (arguments.bin / "runjob").exists():
        raise FileNotFoundError(f"no runjob in {arguments.bin}; build it with cmake --build --preset release --target runjob_command "
                                "runjob-agent runjob_shared runjob_tensorflow")  # fmt: skip
    option, python, python_of_horovod = {
        "torch": ("python", arguments.python, arguments.horovod_python),
        "tensorflow": ("tensorflow-python", arguments.tensorflow_python, arguments.horovod_tensorflow_python),
    }[framework]
    if not installed.has_module(python, framework):
        raise FileNotFoundError(f"{python} has no {framework}: name one that has with --{option}")
    found, absent = with_runjob(arguments, framework, python), []
    if "horovod" in arguments.peers:
        more, absent = horovod(framework, python_of_horovod, f"--horovod-{option}")
        found += more
    return [peer for peer in found if peer.name in arguments.peers], absent
