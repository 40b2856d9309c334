"""The instructions that a rank executes for one short allreduce, counted by Valgrind's callgrind.

    python3 benchmarks/instructions.py build/release/bin [OLD/build/release/bin] [--bytes 4] [--functions 10]

Counts do not depend on how busy the machine is. For each build two jobs of two ranks differ by 10,000 blocking allreduces; the
figure is the difference of their instructions divided by that. Left out is what depends on the time: the functions in which a rank
waits for the other one, and the program's own. Needs Valgrind (Debian: valgrind).
"""

from __future__ import annotations

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

RANKS = 2
FEWER, MORE = 1000, 6000  # collectives_benchmark runs each number twice
OPERATIONS = 2 * (MORE - FEWER)
LEFT_OUT = re.compile(r"Spinning::wait|runjob::benchmark::")
ROW = re.compile(r"\s*([\d,]+) \(\s*[\d.]+%\)\s+(.*)")


def arguments_of(command_line: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=pathlib.Path, help="with runjob and collectives_benchmark")
    parser.add_argument("--bytes", type=int, default=4, help="of each rank's input")
    parser.add_argument("--functions", type=int, default=0, metavar="N", help="also print the N functions with the most instructions")
    return parser.parse_args(command_line)


def run_job(folder: pathlib.Path, size: int, iterations: int, output: pathlib.Path) -> None:
    """Writes what callgrind counted on each rank to output.RANK."""
    benchmark = [folder / "collectives_benchmark", "--op", "allreduce", "--dtype", "float32", "--mode", "blocking"]
    limits = ["--bytes", str(size), "--budget-ms", "0", "--min-iterations", str(iterations)]
    callgrind = ["valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={output}.%q{{RUNJOB_RANK}}"]
    job = subprocess.run([folder / "runjob", "-np", str(RANKS), *callgrind, *benchmark, *limits], capture_output=True, text=True)
    if job.returncode != 0:
        sys.exit(f"instructions.py: error: {folder}: the job ended with status {job.returncode}:\n{job.stderr}")


def counts(file: str) -> dict[str, int]:
    """The instructions of each function itself."""
    annotate = ["callgrind_annotate", "--threshold=100", "--auto=no", file]
    result: dict[str, int] = {}
    for line in subprocess.run(annotate, capture_output=True, text=True, check=True).stdout.splitlines():
        row = ROW.match(line)
        if row and row[2] != "PROGRAM TOTALS":
            result[row[2]] = result.get(row[2], 0) + int(row[1].replace(",", ""))
    return result


def per_operation(folder: pathlib.Path, size: int) -> dict[str, float]:
    """The instructions of each function for one operation, on rank 1, which prints nothing."""
    with tempfile.TemporaryDirectory() as scratch:
        found = []
        for iterations in (FEWER, MORE):
            output = pathlib.Path(scratch, str(iterations))
            run_job(folder, size, iterations, output)
            found.append(counts(f"{output}.1"))
    fewer, more = found
    rows = {name: (count - fewer.get(name, 0)) / OPERATIONS for name, count in more.items()}
    return {name: count for name, count in rows.items() if count >= 0.5 and not LEFT_OUT.search(name)}


def main() -> None:
    arguments = arguments_of()
    for folder in arguments.folders:
        rows = per_operation(folder.resolve(), arguments.bytes)
        print(f"{folder}: {sum(rows.values()):.0f} instructions for an allreduce of {arguments.bytes} bytes")
        most = sorted(rows.items(), key=lambda row: -row[1])[: arguments.functions]
        for name, count in most:
            print(f"  {count:6.1f}  {os.path.basename(name.split(' [')[0])[:100]}")


if __name__ == "__main__":
    main()
