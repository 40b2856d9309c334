"""Memory of a launcher and its helpers while a job sleeps: the sum of their proportional set sizes (PSS)."""

import pathlib
import signal
import subprocess
import time

PROC = pathlib.Path("/proc")
PATIENCE_SECONDS = 60


def descendants(root):
    """{pid: name} of `root` and all below it."""
    parents, names = {}, {}
    for entry in PROC.iterdir():
        if not entry.name.isdigit():
            continue
        try:
            name, _, rest = (entry / "stat").read_text().partition("(")[2].rpartition(")")
        except OSError:
            continue  # it ended meanwhile
        parents[int(entry.name)], names[int(entry.name)] = int(rest.split()[1]), name
    found = {root}
    while more := {pid for pid, parent in parents.items() if parent in found and pid not in found}:
        found |= more
    return {pid: names[pid] for pid in found if pid in names}


def pss_kib(pid):
    for line in (PROC / str(pid) / "smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1])
    raise RuntimeError(f"no Pss line for {pid}")


def measure_one(peer, np):
    job = subprocess.Popen(
        peer.command(np, ["sleep", "600"]), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while list(descendants(job.pid).values()).count("sleep") < np:
            if job.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{peer.name} -np {np} sleep: the job did not start")
            time.sleep(0.05)
        helpers = {pid: name for pid, name in descendants(job.pid).items() if name != "sleep"}
        return {f"{name} {pid}": pss_kib(pid) for pid, name in helpers.items()}
    finally:
        job.send_signal(signal.SIGINT)
        try:
            job.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            job.kill()
            job.wait()


def measure(peers, np, say):
    """{peer: {"pss_kib": total, "processes": {"name pid": KiB}}}"""
    results = {}
    for peer in peers:
        say(f"memory, {peer.name}")
        processes = measure_one(peer, np)
        results[peer.name] = {"pss_kib": sum(processes.values()), "processes": processes}
    return results


def table(results):
    lines = ["| launcher | PSS of it and its helpers, MB | processes |", "|---|---:|---:|"]
    for name, row in results.items():
        lines.append(f"| {name} | {row['pss_kib'] * 1024 / 1e6:.1f} | {len(row['processes'])} |")
    return "\n".join(lines)
