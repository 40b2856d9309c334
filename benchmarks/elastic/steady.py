"""Measures commits and checks, and the wake-ups between commits while no rank is lost."""

from __future__ import annotations

import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

from elastic_jobs import RANK, ROOT, RUNJOB, Job

PROGRAM = pathlib.Path(__file__).resolve().parent / "programs/measure_commits.py"
WATCHED_SECONDS = 3


def measure_commits(python, np, sizes, turns):
    """{MiB: the report of programs/measure_commits.py}"""
    variables = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "python")}
    reports = {}
    for mib in sizes:
        command = [RUNJOB, "-np", str(np), "--min-np", "1", python, PROGRAM, str(mib), str(turns)]
        done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
        match = re.search(r"\{.*\}", done.stdout)
        if done.returncode or not match:
            raise RuntimeError(done.stdout + done.stderr)
        reports[mib] = json.loads(match[0])
    return reports


def commits_table(reports):
    lines = ["| state | memcpy, ms | commit, NumPy, ms | / memcpy | commit, PyTorch, ms | / memcpy | new bytes of Python, new pages |", "|---:|---:|---:|---:|---:|---:|---|"]
    for mib, report in reports.items():
        times = report["times"]
        medians = {name: statistics.median(values) for name, values in times.items()}
        # The ratio is that of two calls of one turn, which other work of the machine slows down alike.
        ratios = {name: statistics.median(a / b for a, b in zip(values, times["memcpy"])) for name, values in times.items()}
        taken = ", ".join(f"{name}: {each['bytes']:,} B, {each['pages']}" for name, each in report["taken"].items() if name != "memcpy")
        cells = [f"{medians[name] * 1e3:.1f} | {ratios[name]:.2f}" for name in ("NumPy", "PyTorch")]
        lines.append(f"| {mib} MiB | {medians['memcpy'] * 1e3:.1f} | {' | '.join(cells)} | {taken} |")
    report = list(reports.values())[-1]
    check = f"check_host_updates(): {report['check_us']:.1f} us; allreduce_() of one byte: {report['allreduce_us']:.1f} us"
    return "\n".join(lines) + "\n\n" + check


def measure_steady_step(bed=None):
    """Waits of each thread of a running job of four ranks, by {"process": {"thread": waits in a second}}: a thread that is not in the table
    of the kernel's context switches has sent and received nothing."""
    hosts = "localhost:4" if bed is None else "s1:2,s2:2"
    command = [RUNJOB, "-np", "4", "--min-np", "2", "-H", hosts, RANK, "STOP", "1000"]
    with Job(command, "elastic_rank", bed) as job:
        job.wait_for_generation(4)
        time.sleep(1)
        processes = {pid: f"rank {variables['RUNJOB_RANK']}" for pid, variables in job.ranks()}
        for pid in list(processes):  # their parents are the agent, the guards, and on this host runjob
            while (pid := parent(pid)) > 1 and pathlib.Path(f"/proc/{pid}/comm").read_text().startswith("runjob"):
                processes[pid] = pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
        if bed is not None:
            processes[job.process.pid] = "runjob"
        before = {pid: waits(pid) for pid in processes}
        time.sleep(WATCHED_SECONDS)
        after = {pid: waits(pid) for pid in processes}
    return {
        f"{name} ({pid})": {thread: (count - before[pid].get(thread, 0)) / WATCHED_SECONDS for thread, count in after[pid].items()}
        for pid, name in processes.items()
    }


def parent(pid):
    return int(re.search(r"PPid:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1])


def waits(pid):
    """{thread: how often it has waited and was woken up}"""
    found = {}
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        count = int(re.search(r"\nvoluntary_ctxt_switches:\s+(\d+)", (task / "status").read_text())[1])
        name = (task / "comm").read_text().strip() if task.name != str(pid) else "main"
        found[name] = found.get(name, 0) + count
    return found


def steady_table(title, result):
    lines = [f"| {title} | thread | wake-ups in a second |", "|---|---|---:|"]
    for process, threads in sorted(result.items()):
        lines += [f"| {process} | {thread} | {count:.1f} |" for thread, count in threads.items()]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit("run benchmarks/elastic")
