"""Starts the job, or is a rank of it: measures, and prints the tables on rank 0."""

from __future__ import annotations

import argparse
import datetime
import importlib.util
import os
import platform
import socket
import sys
import time
from typing import Any

from .. import __version__, basics, objects
from ..launch import run_command
from . import arguments, libraries, machine, measurement, report

_OURS = "runjob"
_GLOO_LIMIT = datetime.timedelta(seconds=60)  # for a rank that cannot connect: the others then go on without Gloo


def say(text: str) -> None:
    """Shows what is measured, on rank 0 only and beside the tables."""
    if basics.rank() == 0:
        print("==", text, file=sys.stderr, flush=True)


def start_job(options: argparse.Namespace) -> None:
    """Replaces this process by runjob, whose ranks run this program again."""
    try:
        program = run_command.find()
    except FileNotFoundError as error:
        sys.exit(f"error: {error}")
    words = ["-np", str(options.np), "--tag-output=none", sys.executable, "-m", "runjob.benchmark", *sys.argv[1:]]
    os.execve(program, [program, *words], run_command.environment(None))


def own_facts() -> dict[str, Any]:
    """Returns this rank's host, its machine, and which libraries it can use."""
    facts: dict[str, Any] = {
        **machine.facts(), "host": socket.gethostname(), "runjob": __version__, "python": platform.python_version(),
        "threads": os.environ.get("OMP_NUM_THREADS", "not set"),
    }  # fmt: skip
    return {**facts, **{name: importlib.util.find_spec(name) is not None for name in ("torch", "numpy")}}


def module_for(facts: list[dict[str, Any]]) -> str:
    """The module that all ranks can use. Ends the program when there is none."""
    for name in ("torch", "numpy"):
        lacking = [rank for rank, each in enumerate(facts) if not each[name]]
        if not lacking:
            return f"runjob.{name}"
        if name == "torch":
            say(f"without PyTorch: rank {lacking[0]} on {facts[lacking[0]]['host']} has none")
    text = f"error: rank {lacking[0]} on {facts[lacking[0]]['host']} has neither PyTorch nor NumPy; install one of them there"
    sys.exit(text if basics.rank() == 0 else 1)


def gloo() -> tuple[Any, str]:
    """PyTorch's Gloo on all ranks; or None and the reason of the first rank that could not join it."""
    found, reason = None, ""
    try:
        found = libraries.TorchDistributed("gloo", _GLOO_LIMIT)
    except (RuntimeError, ValueError) as error:
        reason = str(error).partition("\n")[0]
    failed = [(rank, each) for rank, each in enumerate(objects.allgather_object(reason, name="gloo")) if each]
    return (None, f"Gloo, on rank {failed[0][0]}: {failed[0][1]}") if failed else (found, "")


def measure(options: argparse.Namespace) -> str:
    """The report. All ranks make the same calls."""
    end = time.monotonic() + options.seconds
    facts = objects.allgather_object(own_facts(), name="facts")
    module = module_for(facts)
    ours = libraries.HorovodInterface(module)
    found, left_out = {_OURS: ours}, []
    if module == "runjob.torch":
        theirs, reason = gloo()
        if theirs is not None:
            found["Gloo"] = theirs
        left_out += [reason] if reason else []
    networks = options.networks if module == "runjob.torch" else []
    cases = [(op, nbytes) for op in options.ops for nbytes in ([0] if op == "barrier" else options.sizes)]
    collectives = measurement.Collectives(found, options.turns, say)
    rows = collectives.measure(cases, options.seconds / 2 if networks else options.seconds)
    left_out += [f"{name}: {reason}" for name, reason in collectives.left_out.items()]
    parts = [report.machine_text(facts, options.turns, [each.library for each in found.values()]), report.collectives_table(rows)]
    if networks:
        parts.append(report.training_table(train(networks, options.turns, end, "Gloo" in found, ours.of_rank_0)))
    return "\n\n".join([*parts, *(f"left out: {reason}" for reason in left_out)])


def train(names: list[str], turns: int, end: float, has_gloo: bool, of_rank_0: Any) -> list[tuple[str, dict[str, list[float]]]]:
    """Trains each network and returns {library: milliseconds of a step by turn} for it, until about `end` of the monotonic clock."""
    from . import networks, training

    rows = []
    for number, name in enumerate(names):
        say(f"training, {name}")
        seconds = max(end - time.monotonic(), 0) / (len(names) - number)
        wraps = {_OURS: training.with_horovod("runjob.torch")[1], **({"DDP": training.with_ddp()[1]} if has_gloo else {})}
        trainings = {library: training.Training(networks.MODELS[name], wrap) for library, wrap in wraps.items()}
        rows.append((name, measurement.measure_training(trainings, turns, seconds, of_rank_0)))
    return rows


def main() -> None:
    """Runs the command."""
    options = arguments.parse()
    basics.init()
    if basics.size() == 1:
        if "RUNJOB_RANK" in os.environ or options.np < 2:
            sys.exit("error: one rank has nobody to exchange data with; start at least 2")
        basics.shutdown()
        start_job(options)
    text = measure(options)
    if basics.rank() == 0:
        print(text, flush=True)
    objects.allgather_object(None, name="end")
    basics.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # leaves out Python's end, in which PyTorch's Gloo may abort the process (docs/ddp.md)


if __name__ == "__main__":
    main()
