"""How long after a fault the waiting ranks have their error, and the job its end: rows of docs/faults.md.

sudo .venv/bin/python benchmarks/faults [--rounds 3]; makes its hosts with tests/testbed, so it needs root; and NumPy.
"""

import argparse
import pathlib
import signal
import statistics
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
for folder in ("tests", "tests/python/remote"):
    sys.path.insert(0, str(ROOT / folder))

from remote_jobs import Running  # noqa: E402
from testbed import ETHERNET, INFINIBAND, Testbed  # noqa: E402

# Prints the time at which the error came, on the clock that all hosts of the testbed share.
RANK = """
import time, numpy, runjob.numpy as hvd
hvd.init()
try:
    for step in range(10**9):
        hvd.allreduce(numpy.full(1000, float(step)))
        if step == 3:
            print("ready", flush=True)
except hvd.HorovodInternalError:
    print("error", time.monotonic(), flush=True)
    raise
"""


def kill_rank(bed, job):
    next(p for p in job.on(bed.hosts[1]) if p.has_mark("RUNJOB_RANK=2")).kill()


def kill_agent(bed, job):
    job.named(bed.hosts[1], "runjob-agent")[0].kill()


def stop_agent(bed, job):
    job.named(bed.hosts[1], "runjob-agent")[0].kill(signal.SIGSTOP)


def power_off(bed, _):
    bed.hosts[1].kill()


CASES = [
    (2, "a rank is killed", kill_rank),
    (16, "an agent is killed", kill_agent),
    (19, "an agent is stopped", stop_agent),
    (36, "the cables are pulled", lambda bed, job: bed.hosts[1].cut_network()),
    (38, "packets pass in one direction", lambda bed, job: bed.hosts[1].drop_incoming()),
    (39, "the data network is cut", lambda bed, job: bed.hosts[1].cut_network("ib0")),
    (40, "data connections are reset", lambda bed, job: bed.hosts[1].reset_connections("ib0")),
    (46, "a host loses its power", power_off),
]  # fmt: skip


def measure(fault):
    """Seconds to the last error of a rank on the other host, None when it was ended without one; and to the job's end."""
    with Testbed(hosts=2, networks=(ETHERNET, INFINIBAND), visible=[sys.prefix]) as bed:
        variables = {"PYTHONPATH": str(ROOT / "python"), "OMP_NUM_THREADS": "1"}
        options = ["-H", "s1:2,s2:2", "--network-interface", "ib0", "--grace-period", "1"]
        with Running(bed, *options, sys.executable, "-u", "-c", RANK, variables=variables) as job:
            job.wait_for_lines(4)
            began = time.monotonic()
            fault(bed, job)
            _, output, _ = job.finish(timeout=120)
            ended = time.monotonic() - began
            if fault is power_off:
                del bed.hosts[1]  # there is nothing to clean up any more
    lines = [line.partition("<stdout>:") for line in output.splitlines() if "error " in line]
    errors = [float(text.split()[1]) - began for tag, _, text in lines if tag in ("[0]", "[1]")]
    return max(errors, default=None), ended


def main():
    parser = argparse.ArgumentParser(prog="benchmarks/faults", description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3, help="runs of each row; the medians are printed")
    rounds = parser.parse_args().rounds
    print("| row | fault | error in the ranks of the other host | end of the job |\n|---:|---|---:|---:|")
    for row, what, fault in CASES:
        runs = [measure(fault) for _ in range(rounds)]
        errors = [error for error, _ in runs if error is not None]
        error = f"{statistics.median(errors):.2f} s" if errors else "none: they are ended"
        print(f"| {row} | {what} | {error} | {statistics.median(end for _, end in runs):.2f} s |", flush=True)


if __name__ == "__main__":
    main()
