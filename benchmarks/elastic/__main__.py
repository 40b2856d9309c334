"""Elastic jobs beside other launchers: how long the ranks stand still when one is lost or comes, and what commits cost.

sudo .venv/bin/python benchmarks/elastic [options]; needs the release build, PyTorch and scikit-learn, and root for jobs on several hosts.
Prints tables and writes JSON.
"""

import argparse
import json
import os
import pathlib
import platform
import signal
import statistics
import subprocess
import sys

import losses
import peers
import steady

from elastic_jobs import ROOT
from testbed import Testbed, TestbedError

PARTS = ["losses", "torch", "power", "commits", "steady", "many"]
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "runjob/benchmarks"


def parse_arguments():
    parser = argparse.ArgumentParser(prog="benchmarks/elastic", description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=PARTS, nargs="+", default=PARTS,
                        help="losses: C++ programs; torch: the digits CNN, beside other launchers; power: a host loses its power; commits: what a "
                             "commit and a check cost; steady: wake-ups between commits; many: simulated hosts")  # fmt: skip
    parser.add_argument("--rounds", type=int, default=3, help="jobs of each row; most lose three ranks")
    parser.add_argument("--cases", nargs="+", help="only rows whose name contains one of these words")
    parser.add_argument("--python", default=sys.executable, help="a Python that has torch and scikit-learn")
    parser.add_argument("--horovod-python", default=str(CACHE / "horovod-torch/bin/python"))
    parser.add_argument("--torchft-python", default=str(CACHE / "torchft/bin/python"))
    parser.add_argument("--commit-mib", type=int, nargs="+", default=[4, 64, 256])
    parser.add_argument("--simulated-hosts", type=int, nargs="+", default=[10, 100, 1000])
    parser.add_argument("--json", default=str(ROOT / "build/elastic.json"), help="where the numbers go")
    return parser.parse_args()


def say(text):
    print("==", text, file=sys.stderr, flush=True)


def of_losses(cases, arguments):
    cases = [case for case in cases if not arguments.cases or any(word in case.name for word in arguments.cases)]
    if not cases:
        return {}, ""
    results, failed = losses.alternate(cases, arguments.rounds, say)
    for name, reason in failed.items():
        say(f"a job of this row failed: {name}: {reason}")
    return {"rows": results, "failed": failed}, losses.table(cases, results)


def of_torch(arguments):
    cases, absent = peers.cases(arguments.python, arguments.horovod_python, arguments.torchft_python)
    for reason in absent:
        say(f"left out: {reason}")
    results, table = of_losses(cases, arguments)
    first = next(iter(results.get("rows", {}).values()), None)
    if first:
        own = statistics.median(first["stopped"])
        for name, row in results["rows"].items():
            row["ratio"] = own / statistics.median(row["stopped"])
        ratios = [f"{name}: {row['ratio']:.3f}" for name, row in results["rows"].items()]
        table += "\n\nThe first row's median divided by each: " + "; ".join(ratios)
    return {**results, "not_installed": absent}, table


def of_power(arguments):
    seconds = losses.measure_power_cut(arguments.rounds)
    return seconds, f"A host's power cut, 8 ranks on 4 hosts: error in the last of the other ranks after {losses.text(seconds)} s"


def of_commits(arguments):
    reports = steady.measure_commits(arguments.python, 2, arguments.commit_mib, 15)
    return reports, steady.commits_table(reports)


def of_steady(_):
    here = steady.measure_steady_step()
    tables = [steady.steady_table("4 ranks on this host", here)]
    try:
        with Testbed(hosts=2, visible=[sys.prefix]) as bed:
            between = steady.measure_steady_step(bed)
        tables.append(steady.steady_table("2 ranks on each of 2 hosts", between))
    except TestbedError as problem:
        between = str(problem)
        say(f"left out: steady steps between hosts: {problem}")
    return {"here": here, "between_hosts": between}, "\n\n".join(tables)


def of_many(arguments):
    program, rows = ROOT / "build/release/bin/elastic_hosts", {}
    for hosts in arguments.simulated_hosts:
        runs = [subprocess.run([program, str(hosts)], capture_output=True, text=True, check=True).stdout for _ in range(max(5, arguments.rounds))]
        rows[hosts] = [json.loads(run)["seconds"] for run in runs]
    lines = ["| simulated hosts | all have the notice of a loss, s |", "|---:|---:|"]
    return rows, "\n".join([*lines, *(f"| {hosts:,} | {losses.text(seconds)} |" for hosts, seconds in rows.items())])


def main():
    arguments = parse_arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that the jobs end too
    report = {"cores": len(os.sched_getaffinity(0)), "kernel": platform.release()}
    measures = {"losses": lambda given: of_losses(losses.cases(), given), "torch": of_torch, "power": of_power, "commits": of_commits,
                "steady": of_steady, "many": of_many}  # fmt: skip
    for part in arguments.only:
        say(part)
        try:
            report[part], table = measures[part](arguments)
        except TestbedError as problem:
            say(f"left out: {part}: {problem}")
            continue
        print(table, end="\n\n", flush=True)
    pathlib.Path(arguments.json).parent.mkdir(parents=True, exist_ok=True)
    pathlib.Path(arguments.json).write_text(json.dumps(report, indent=2) + "\n")
    say(f"numbers written to {arguments.json}")


if __name__ == "__main__":
    main()
