"""How long ranks stand still when one of them is killed, when a host loses its power, and when another rank comes."""

from __future__ import annotations

import dataclasses
import statistics
import sys
import time
from collections.abc import Callable

from elastic_jobs import RANK, ROOT, RUNJOB, Job

sys.path.append(str(ROOT / "tests"))
from testbed import Testbed  # noqa: E402

SETTLED_SECONDS = 0.3  # of training before each loss


@dataclasses.dataclass(frozen=True)
class Case:
    """One row: a job that loses a rank again and again."""

    name: str
    program: str  # a word of the ranks' command line
    command: list
    ranks: int
    left: int  # ranks of the generation after the loss
    grows: bool = True  # a replacement comes
    goal: float | None = None
    hosts: int = 0  # of a testbed; 0: this one
    variables: dict = dataclasses.field(default_factory=dict)
    losses_in_a_job: int = 3


def runjob(*options):
    return [RUNJOB, *options, "--rank-restarts", "1000"]


def cases(microseconds=1000):
    """The jobs of elastic_rank."""
    rank = [RANK, "STOP", str(microseconds)]
    return [
        Case("4 ranks, C++", "elastic_rank", [*runjob("-np", "4", "--min-np", "2"), *rank], 4, 3, goal=0.15),
        Case("4 ranks and a spare, C++", "elastic_rank",
             [*runjob("-np", "4", "--min-np", "2", "--spares", "1", "-H", "localhost:5"), *rank], 4, 4, grows=False, goal=0.15),
        Case("16 ranks on 4 hosts, C++", "elastic_rank",
             [*runjob("-np", "16", "--min-np", "8", "-H", "s1:4,s2:4,s3:4,s4:4"), *rank], 16, 15, goal=0.5, hosts=4),
        Case("256 ranks on one host, C++", "elastic_rank",
             [*runjob("-np", "256", "--min-np", "8", "-H", "localhost:256"), *rank], 256, 255, goal=2.0, losses_in_a_job=2),
    ]  # fmt: skip


def measure(case, losses):
    """Returns the seconds from each loss to the end of the next allreduce on the last rank, and those for which each growth stopped the others."""
    stopped, grown = [], []
    if case.hosts:
        with Testbed(hosts=case.hosts, visible=[sys.prefix]) as bed:
            _lose(case, losses, bed, stopped, grown)
    else:
        _lose(case, losses, None, stopped, grown)
    return stopped, grown


def _lose(case, losses, bed, stopped, grown):
    with Job(case.command, case.program, bed, case.variables) as job:
        job.wait_for_generation(case.ranks)
        for index in range(losses):
            time.sleep(SETTLED_SECONDS)
            killed = job.kill_rank(1 + index % (case.ranks - 1))
            # A replacement may have come before the others have met.
            lines = job.wait_for_generation(case.left, case.ranks, after=killed)
            stopped.append(max(line.first for line in lines) - killed)
            if case.grows and lines[0].size < case.ranks:
                lines = job.wait_for_generation(case.ranks, after=max(line.first for line in lines))
                grown.append(max(line.first - line.last for line in lines if line.last))


def measure_power_cut(rounds):
    """Seconds from a host's loss of power to the error of the last rank on the three others."""
    seconds = []
    for _ in range(rounds):
        with Testbed(hosts=4) as bed:
            command = [*runjob("-np", "8", "--min-np", "2", "-H", "s1:2,s2:2,s3:2,s4:2", "--grace-period", "1"), RANK, "STOP", "1000"]
            with Job(command, "elastic_rank", bed) as job:
                job.wait_for_generation(8)
                time.sleep(SETTLED_SECONDS)
                cut = time.monotonic()
                bed.hosts[3].kill()
                job.wait_for_generation(6, after=cut)
            del bed.hosts[3]
            seconds.append(max(job.errors) - cut)
    return seconds


def alternate(cases, rounds, say: Callable[[str], None]):
    """{case: {"stopped": [...], "grown": [...]}} and {case: why a job of it failed}; all cases run in turn, `rounds` times."""
    results, failed = {case.name: {"stopped": [], "grown": []} for case in cases}, {}
    for turn in range(rounds):
        for case in cases[turn % len(cases) :] + cases[: turn % len(cases)]:
            say(f"{case.name}, turn {turn + 1}")
            try:
                stopped, grown = measure(case, case.losses_in_a_job)
            except (RuntimeError, IndexError, OSError) as problem:
                failed[case.name] = str(problem)
                continue
            results[case.name]["stopped"] += stopped
            results[case.name]["grown"] += grown
    return {name: row for name, row in results.items() if row["stopped"]}, failed


def text(values):
    return f"{statistics.median(values):.3f} ({min(values):.3f} to {max(values):.3f})" if values else ""


def table(cases, results):
    lines = ["| job | losses | from the kill to the next allreduce, s | goal, s | others stand still for the newcomer, s |", "|---|---:|---:|---:|---:|"]
    for case in cases:
        if case.name in results:
            row = results[case.name]
            goal = f"{case.goal:g}" if case.goal else ""
            lines.append(f"| {case.name} | {len(row['stopped'])} | {text(row['stopped'])} | {goal} | {text(row['grown'])} |")
    return "\n".join(lines)
