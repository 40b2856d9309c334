"""The rendezvous of a large job: all ranks join and pass a barrier, then one leader per host gathers a blob from all leaders.

python3 benchmarks/rendezvous [options]; needs Python's standard library and the target rendezvous_benchmark.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
WAYS = {"relay": "through the agents' relay", "direct": "directly over TCP, every message signed"}
COLUMNS = {
    "joined": "joined, s",
    "barrier_passed": "barrier, s",
    "gathered": "gathered, s",
    "head_cpu_seconds": "head's processor time, s",
    "head_peak_mb": "head's memory, MB",
}


def parse_arguments():
    parser = argparse.ArgumentParser(prog="benchmarks/rendezvous", description=__doc__.splitlines()[0])
    parser.add_argument("--program", default=str(ROOT / "build/release/bin/rendezvous_benchmark"))
    parser.add_argument("--relay", type=size, nargs="*", default=[(10, 10), (100, 10), (1000, 10)], metavar="HOSTSxRANKS")
    parser.add_argument("--direct", type=size, nargs="*", default=[(10, 10), (100, 10)], metavar="HOSTSxRANKS")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", default=str(ROOT / "build/rendezvous.json"), help="where the numbers go")
    return parser.parse_args()


def size(text):
    hosts, _, ranks = text.partition("x")
    return int(hosts), int(ranks)


def measure(program, way, hosts, ranks, rounds):
    """The median of each figure."""
    runs = []
    for _ in range(rounds):
        done = subprocess.run([program, way, str(hosts), str(ranks)], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"benchmarks/rendezvous: error: {way} with {hosts} hosts failed:\n{done.stderr}")
        runs.append(json.loads(done.stdout))
    return {name: statistics.median(run[name] for run in runs) for name in COLUMNS}


def main():
    arguments = parse_arguments()
    if not pathlib.Path(arguments.program).exists():
        sys.exit(f"benchmarks/rendezvous: error: no {arguments.program}; build it with\n"
                 "    cmake --build --preset release --target rendezvous_benchmark")  # fmt: skip
    results = []
    for way, title in WAYS.items():
        print(f"{title}, medians of {arguments.rounds} runs\n")
        print("| hosts | ranks |" + "".join(f" {column} |" for column in COLUMNS.values()))
        print("|---:|---:|" + "---:|" * len(COLUMNS))
        for hosts, ranks in getattr(arguments, way):
            figures = measure(arguments.program, way, hosts, ranks, arguments.rounds)
            results.append({"way": way, "hosts": hosts, "ranks": hosts * ranks, "rounds": arguments.rounds, **figures})
            print(f"| {hosts:,} | {hosts * ranks:,} |" + "".join(f" {value:.3g} |" for value in figures.values()), flush=True)
        print()
    path = pathlib.Path(arguments.json)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
