"""runjob's collectives beside those of MPIs, torch.distributed and Horovod: time by size, ratios, and what memory allows.

python3 -m benchmarks.collectives [options]; docs/developers/benchmarks.md says what it measures and how.
"""

import importlib.util
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:1] = [str(ROOT), str(ROOT / "python")]  # `python3 benchmarks/collectives` works as well

from benchmarks.collectives import arguments as command_line  # noqa: E402
from benchmarks.collectives import cases, environments, machine, peers, summary, turns  # noqa: E402
from runjob.benchmark import figures  # noqa: E402


def say(text):
    print("==", text, file=sys.stderr, flush=True)


def chosen_cases(arguments):
    """Those whose sizes fit into memory."""
    found = []
    for case in cases.choose(arguments.np, arguments.ops, arguments.dtypes, arguments.modes, arguments.sizes):
        fitting, too_large = cases.fit(case, machine.available_bytes() * 3 // 4)
        if too_large:
            say(f"left out: {case.title}: {', '.join(map(figures.size_text, too_large))} do not fit into memory")
        if fitting.sizes:
            found.append(fitting)
    return found


def measure(chosen, found, arguments, report):
    """Adds each case to the report and prints its tables as soon as it is done."""
    interfaces = {peer.name: peer.interface for peer in found}
    for number, case in enumerate(chosen, 1):
        say(f"{case.title} ({number} of {len(chosen)})")
        measured = turns.CaseMeasurement(case, found, arguments, say).run()
        report["versions"].update({name: library for name, library in measured.libraries.items() if library})
        results = measured.results()
        report["cases"].append({
            "title": case.title, "np": case.np, "op": case.op, "dtype": case.dtype, "mode": case.mode,
            "results": results, "left_out": measured.left_out,
            "ratios": {f"{ours} / {name}": row for (ours, name), row in summary.ratios(summary.medians(results), interfaces).items()},
        })  # fmt: skip
        if results:
            print(summary.tables(case.title, results, interfaces) + "\n", flush=True)


def write(report, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    say(f"numbers written to {path}")


def plot(arguments):
    """Drawn by a Python that has matplotlib: this one, or the environment for it."""
    own = arguments.cache / "plot/bin/python"
    python = sys.executable if importlib.util.find_spec("matplotlib") else own
    if not pathlib.Path(python).exists():
        say("no plot: there is no matplotlib; --install-peers gets it")
        return
    program = pathlib.Path(__file__).resolve().parent / "plot.py"
    done = subprocess.run([python, program, arguments.json, arguments.plot], check=False)
    say(f"no plot: status {done.returncode}" if done.returncode else f"plot written to {arguments.plot}")


def main():
    arguments = command_line.parse()
    if arguments.install_peers:
        environments.install(arguments.cache, say)
    try:
        found, absent = peers.find(arguments, say)
    except FileNotFoundError as error:
        sys.exit(f"benchmarks/collectives: error: {error}")
    for reason in absent:
        say(f"left out: {reason}")
    facts = machine.facts()
    if text := machine.noise(float(facts["load"])):
        say(text)
    report = {
        "machine": facts, "rounds": arguments.rounds, "budget_ms": arguments.budget_ms, "versions": {},
        "peers": {peer.name: peer.described() for peer in found}, "left_out": absent, "cases": [],
    }  # fmt: skip
    print(f"{facts['cpu']}, {facts['cores']} cores, Linux {facts['kernel']}, runjob {facts['commit']}; medians of {arguments.rounds} turns\n")
    measure(chosen_cases(arguments), found, arguments, report)
    print("; ".join(f"{name}: {version}" for name, version in report["versions"].items()))
    write(report, arguments.json)
    if arguments.plot:
        plot(arguments)
    if failed := [case["title"] for case in report["cases"] if peers.OURS not in case["results"] and not is_lacking(case)]:
        sys.exit(f"benchmarks/collectives: error: runjob failed at {'; '.join(failed)}")


def is_lacking(case):
    """Whether runjob's C++ interface does not have the operation or the mode, which is no failure."""
    return case["op"] == cases.MESSAGES or case["mode"] == "future" or "runjob.hpp has no" in case["left_out"].get(peers.OURS, "")


if __name__ == "__main__":
    main()
