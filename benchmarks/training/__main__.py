"""The same training with runjob, with what PyTorch and TensorFlow have themselves, Horovod, and by processes that do not communicate.

python3 -m benchmarks.training [options]; docs/developers/benchmarks.md says what it measures and how.
"""

import contextlib
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:1] = [str(ROOT), str(ROOT / "python")]  # `python3 benchmarks/training` works as well

from benchmarks.collectives import machine  # noqa: E402
from benchmarks.training import arguments as command_line  # noqa: E402
from benchmarks.training import peers, summary, turns  # noqa: E402


def say(text):
    print("==", text, file=sys.stderr, flush=True)


@contextlib.contextmanager
def hosts_of(arguments):
    """The head of --hosts in a testbed; None for this machine."""
    if not arguments.hosts:
        yield None
        return
    sys.path.append(str(ROOT / "tests"))
    from testbed import Testbed, TestbedError

    folders = {str(arguments.bin.parent), str(ROOT / "build"), str(pathlib.Path(arguments.python).parents[1])}
    try:
        with Testbed(arguments.hosts, visible=sorted(folders)) as bed:
            for host in bed.hosts:
                if arguments.rate:
                    host.shape_network(arguments.rate, burst="256kb")
                if arguments.congestion_control:
                    host.set_congestion_control(arguments.congestion_control)
            yield bed.head
    except TestbedError as error:
        sys.exit(f"benchmarks/training: error: {error}")


def start(found, np, model, arguments, head=None):
    """The jobs that began, one after the other, and why the others did not."""
    jobs, left_out = [], {}
    for peer in found:
        try:
            jobs.append(turns.Job(peer, np, model, arguments.timeout, arguments.priority, head, ROOT / "build" if head else None))
        except turns.Failed as error:
            left_out[peer.name] = str(error)
            say(f"left out: {peer.name}, {model}: {error}")
    return jobs, left_out


def measure(found, np, model, arguments, head=None):
    """One case of the report."""
    jobs, left_out = start(found, np, model, arguments, head)
    try:
        answers = turns.measure(jobs, arguments.turns, arguments.steps, arguments.settle)
        facts = jobs[0].facts[0] if jobs else {}
        libraries = {job.peer.name: ", ".join(filter(None, (job.facts[0]["library"], job.peer.library))) for job in jobs}
    finally:
        for job in jobs:
            job.end()
    batch = facts.get("batch")
    speeds = {
        name: [summary.speed(batch, [rank["seconds"] for rank in turn]) for turn in heard] for name, heard in answers.items()
    }
    memory = {
        name: {key: max(rank[key] for rank in heard[-1]) for key in ("VmHWM", "Pss")} for name, heard in answers.items()
    }
    return {
        "model": model, "np": np, "batch": batch, "parameters": facts.get("parameters"), "libraries": libraries,
        "results": summary.results(speeds, peers.OURS), "pairs": summary.pairs(speeds, peers.PAIRS), "memory": memory,
        "left_out": left_out,
    }  # fmt: skip


def find(arguments):
    """{model: its peers}, and the reasons why others are absent. Ends the program when what is to be measured is not here."""
    found, absent = {}, []
    for framework, models in peers.MODELS.items():
        chosen = [model for model in arguments.models if model in models]
        if not chosen:
            continue
        try:
            those, reasons = peers.find(arguments, framework)
        except FileNotFoundError as error:
            sys.exit(f"benchmarks/training: error: {error}")
        absent += reasons
        found.update(dict.fromkeys(chosen, those))
    for reason in absent:
        say(f"left out: {reason}")
    return found, absent


def main():
    arguments = command_line.parse()
    found, absent = find(arguments)
    facts = machine.facts()
    if text := machine.noise(float(facts["load"])):
        say(text)
    cases = []
    with hosts_of(arguments) as head:
        for np in arguments.np:
            for model in arguments.models:
                say(f"{model}, np {np}" + (f", {arguments.hosts} hosts" if head else ""))
                cases.append(measure(found[model], np, model, arguments, head))
                print(summary.table(cases[-1:], peers.OURS) + "\n", flush=True)
    print(summary.table(cases, peers.OURS), summary.memory_table(cases), sep="\n\n")
    report = {"machine": facts, "turns": arguments.turns, "steps": arguments.steps, "priority": arguments.priority, "hosts": arguments.hosts, "congestion_control": arguments.congestion_control, "left_out": absent, "cases": cases}
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    say(f"numbers written to {arguments.json}")
    if failed := [f"{case['model']}, np {case['np']}" for case in cases if peers.OURS not in case["results"]]:
        sys.exit(f"benchmarks/training: error: runjob failed at {'; '.join(failed)}")


if __name__ == "__main__":
    main()
