"""How long `LAUNCHER -np N true` takes from start to end, the launchers taking turns."""

import subprocess
import time

import turns


def once(peer, np):
    started = time.perf_counter()
    done = subprocess.run(
        peer.command(np, ["true"]), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False
    )
    seconds = time.perf_counter() - started
    if done.returncode:
        raise RuntimeError(f"{peer.name} -np {np} true: status {done.returncode}: {done.stderr.decode()[-500:]}")
    return seconds


def measure(peers, sizes, rounds, say):
    """{size: {peer: {"median": seconds, "lowest": ..., "highest": ..., "runs": ...}}}"""
    results = {}
    for size in sizes:
        say(f"launch time, {size} processes")
        samples = turns.alternate(peers, rounds, lambda peer, size=size: once(peer, size))
        results[size] = {name: turns.summary(mine) for name, mine in samples.items()}
    return results


def table(results, peers):
    rows = {size: {name: cell["median"] for name, cell in row.items()} for size, row in results.items()}
    return turns.table("processes", rows, [peer.name for peer in peers])
