"""runjob beside other launchers: time to start and end a job, memory while it runs, speed of its output.

python3 benchmarks/launch [options]; needs Python's standard library only. Prints tables and writes JSON.
"""

import argparse
import json
import os
import pathlib
import platform
import shutil
import sys

import host_peers
import hosts
import launch_time
import memory
import output
import peers

ROOT = pathlib.Path(__file__).resolve().parents[2]
PARTS = ["time", "memory", "output", "hosts"]


def parse_arguments():
    parser = argparse.ArgumentParser(prog="benchmarks/launch", description=__doc__.splitlines()[0])
    parser.add_argument("--runjob", default=str(ROOT / "build/release/bin/runjob"), help="the runjob to measure")
    parser.add_argument("--mpich", default=str(ROOT / "build/mpich"), help="a virtual environment with the mpich wheel")
    parser.add_argument("--install-mpich", action="store_true", help="make that environment when it is not there")
    parser.add_argument("--torch-python", default=venv_python(), help="a Python that has torch, for torchrun")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 2, 8, 32], help="numbers of processes")
    parser.add_argument("--rounds", type=int, default=21, help="runs per launcher and size")
    parser.add_argument("--output-mb", type=int, default=1000, help="how much the ranks write")
    parser.add_argument("--output-rounds", type=int, default=3)
    parser.add_argument("--hosts", type=int, nargs="+", default=[1, 2, 4, 8, 16, 32], help="numbers of hosts")
    parser.add_argument("--host-rounds", type=int, default=7, help="runs per launcher and number of hosts")
    parser.add_argument("--only", choices=PARTS, nargs="+", default=PARTS)
    parser.add_argument("--peers", nargs="+", help="only these launchers")
    parser.add_argument("--json", default=str(ROOT / "build/launch.json"), help="where the numbers go")
    return parser.parse_args()


def venv_python():
    own = ROOT / ".venv/bin/python"
    return str(own) if own.exists() else shutil.which("python3") or sys.executable


def machine():
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "unknown")
    return {"cpu": cpu, "cores": len(os.sched_getaffinity(0)), "kernel": platform.release()}


def say(text):
    print("==", text, file=sys.stderr, flush=True)


def choose(searched, arguments):
    found, absent = searched
    for reason in absent:
        say(f"left out: {reason}")
    chosen = [peer for peer in found if not arguments.peers or peer.name in arguments.peers]
    if not chosen:
        sys.exit("benchmarks/launch: error: none of the launchers is here")
    return chosen, absent


def measure_on_this_host(arguments, report):
    """Adds to the report; returns the tables."""
    found, report["left_out"] = choose(peers.find(arguments), arguments)
    report["versions"].update({peer.name: peer.version for peer in found})
    tables = []
    if "time" in arguments.only:
        report["time"] = launch_time.measure(found, arguments.sizes, arguments.rounds, say)
        tables.append(launch_time.table(report["time"], found))
    if "memory" in arguments.only:
        report["memory"] = memory.measure(found, 2, say)
        tables.append(memory.table(report["memory"]))
    if "output" in arguments.only:
        report["output"] = output.measure(found, 4, arguments.output_mb * 1_000_000, arguments.output_rounds, say)
        tables.append(output.table(report["output"]))
    return tables


def measure_on_hosts(arguments, report):
    found, absent = choose(host_peers.find(arguments), arguments)
    report["versions"].update({peer.name: peer.version for peer in found})
    report["hosts"], failing = hosts.measure(found, arguments.hosts, arguments.host_rounds, say)
    report["left_out_with_hosts"] = absent + failing
    return hosts.tables(report["hosts"], found)


def main():
    arguments = parse_arguments()
    report, tables = {"machine": machine(), "versions": {}}, []
    if set(arguments.only) - {"hosts"}:
        tables += measure_on_this_host(arguments, report)
    if "hosts" in arguments.only:
        tables += measure_on_hosts(arguments, report)

    print(f"{report['machine']['cpu']}, {report['machine']['cores']} cores, Linux {report['machine']['kernel']}; "
          + ", ".join(f"{name}: {version}" for name, version in report["versions"].items()) + "\n")  # fmt: skip
    print("\n\n".join(tables))
    pathlib.Path(arguments.json).parent.mkdir(parents=True, exist_ok=True)
    pathlib.Path(arguments.json).write_text(json.dumps(report, indent=2) + "\n")
    say(f"numbers written to {arguments.json}")


if __name__ == "__main__":
    main()
