"""One rank on each of several hosts: how long it takes until all have started and ended, and what that costs the head.

The hosts are those of tests/testbed: namespaces on this machine, joined by a bridge, each with OpenSSH's sshd. They share
its cores, so most of the time is that of both ends of the SSH connections. `ssh` opens them and does nothing else.
"""

import json
import pathlib
import signal
import statistics
import subprocess
import sys
import time

import memory
import turns

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "tests"))
from testbed import Testbed, TestbedError, eventually

STOPWATCH = pathlib.Path(__file__).resolve().parent / "stopwatch.py"
LOG_SECONDS = 0.3  # until what sshd has said is in its log
PATIENCE_SECONDS = 5  # with a job that was told to end


class Stopwatch:
    """Runs commands at the head and takes the time there, so that nothing of ours lies between."""

    def __init__(self, bed):
        command = [sys.executable, STOPWATCH]
        self._process = bed.head.popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def measure(self, peer, hosts):
        """{"seconds", "cpu_seconds"} of one run of `true`."""
        self._process.stdin.write(json.dumps(peer.command([host.name for host in hosts], ["true"])) + "\n")
        self._process.stdin.flush()
        sample = json.loads(self._process.stdout.readline())
        if sample["status"]:
            raise RuntimeError(f"{peer.name} on {len(hosts)} hosts: status {sample['status']}: {sample['errors'][-300:].strip()}")
        return sample


def make_hosts(peers, count):
    """A testbed whose head can read all peers, and whose hosts only those that need themselves there."""
    folders = [peer.folder for peer in peers if peer.folder]
    hidden = [str(peer.folder) for peer in peers if peer.folder and not peer.needed_on_hosts and peer.folder.parts[1] != "usr"]
    return Testbed(count, visible=folders, hide=tuple(hidden))


def working(peers, bed, stopwatch):
    """Those that start a program on the first host, and why the others do not."""
    found, reasons = [], []
    for peer in peers:
        try:
            stopwatch.measure(peer, bed.hosts[:1])
            found.append(peer)
        except RuntimeError as problem:
            reasons.append(str(problem))
    return found, reasons


def measure(peers, sizes, rounds, say):
    """The results, and why some peers have none.

    {number of hosts: {peer: {"median": seconds, "lowest", "highest", "runs", "cpu_seconds", "connections", "pss_kib", "processes"}}}
    """
    try:
        with make_hosts(peers, max(sizes)) as bed, Stopwatch(bed) as stopwatch:
            peers, reasons = working(peers, bed, stopwatch)
            for reason in reasons:
                say(f"left out: {reason}")
            return {size: measure_size(peers, bed, stopwatch, size, rounds, say) for size in sizes if peers}, reasons
    except TestbedError as problem:
        say(f"left out: all with several hosts: {problem}")
        return {}, [str(problem)]


def measure_size(peers, bed, stopwatch, size, rounds, say):
    say(f"launch time, {size} hosts")
    hosts = bed.hosts[:size]
    samples = turns.alternate(peers, rounds, lambda peer: stopwatch.measure(peer, hosts), lambda sample: sample["seconds"])
    row = {}
    for peer in peers:
        mine = samples[peer.name]
        row[peer.name] = {
            **turns.summary([sample["seconds"] for sample in mine]),
            "cpu_seconds": statistics.median(sample["cpu_seconds"] for sample in mine),
            "connections": connections(peer, hosts, stopwatch),
            **memory_of(peer, bed, hosts),
        }
    return row


def connections(peer, hosts, stopwatch):
    """SSH connections of one run, all hosts together."""
    before = sum(host.ssh_connections() for host in hosts)
    stopwatch.measure(peer, hosts)
    time.sleep(LOG_SECONDS)
    return sum(host.ssh_connections() for host in hosts) - before


def memory_of(peer, bed, hosts):
    """PSS of all that runs at the head while a rank sleeps on each host."""
    others = {process.pid for process in bed.head.processes()}
    command = peer.command([host.name for host in hosts], ["sleep", "600"])
    with bed.head.popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as job:
        started = f"{peer.name} has started a rank on each host"
        eventually(lambda: all(has_rank(host) for host in hosts), started, limit=memory.PATIENCE_SECONDS)
        mine = [process.machine_pid for process in bed.head.processes() if process.pid not in others]
        pss = sum(memory.pss_kib(pid) for pid in mine)
        job.send_signal(signal.SIGINT)
        end(bed, others, hosts)
    return {"pss_kib": pss, "processes": len(mine)}


def has_rank(host):
    return any(process.name == "sleep" for process in host.processes())


def end(bed, others, hosts):
    """Waits until nothing of the job is left. Of parallel ssh, something always is: it gets killed."""

    def left():
        at_head = [process for process in bed.head.processes() if process.pid not in others]
        return at_head + [process for host in hosts for process in host.processes()]

    try:
        eventually(lambda: not left(), "the job has ended", limit=PATIENCE_SECONDS)
    except AssertionError:
        for process in left():
            process.kill()
        eventually(lambda: not left(), "what was left of the job has ended")


def tables(results, peers):
    """Times for each number of hosts, and what the head pays for the largest one."""
    names = [peer.name for peer in peers if any(peer.name in row for row in results.values())]
    if not names:
        return []
    times = {size: {name: row[name]["median"] for name in names} for size, row in results.items()}
    largest = max(results)
    lines = [
        f"| launcher, {largest} hosts | CPU at the head, s | PSS at the head, MB | processes at the head | SSH connections |",
        "|---|---:|---:|---:|---:|",
    ]
    for name in names:
        cell = results[largest][name]
        megabytes = cell["pss_kib"] * 1024 / 1e6
        lines.append(f"| {name} | {cell['cpu_seconds']:.2f} | {megabytes:.1f} | {cell['processes']} | {cell['connections']} |")
    return [turns.table("hosts", times, names), "\n".join(lines)]
