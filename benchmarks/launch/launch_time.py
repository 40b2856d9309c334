"""How long `LAUNCHER -np N true` takes from start to end, the launchers taking turns."""

import statistics
import subprocess
import time

SLOW_SECONDS = 1.0
SLOW_ROUNDS = 3  # a launcher that takes seconds needs no twenty samples to be told from one that takes milliseconds


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
        samples = {peer.name: [] for peer in peers}
        for peer in peers:
            once(peer, size)  # the first one reads programs from the disk
        for turn in range(rounds):
            for peer in peers[turn % len(peers) :] + peers[: turn % len(peers)]:
                mine = samples[peer.name]
                if len(mine) < SLOW_ROUNDS or statistics.median(mine) < SLOW_SECONDS:
                    mine.append(once(peer, size))
        results[size] = {
            name: {"median": statistics.median(mine), "lowest": min(mine), "highest": max(mine), "runs": len(mine)}
            for name, mine in samples.items()
        }
    return results


def table(results, peers):
    names = [peer.name for peer in peers]
    lines = ["| processes | " + " | ".join(f"{name}, ms" for name in names) + " | "]
    lines[0] += " | ".join(f"{names[0]} / {name}" for name in names[1:]) + " |"
    lines.append("|" + "---:|" * (2 * len(names)))
    for size, row in results.items():
        medians = [row[name]["median"] for name in names]
        cells = [f"{median * 1000:.1f}" for median in medians] + [f"{medians[0] / other:.2f}" for other in medians[1:]]
        lines.append(f"| {size} | " + " | ".join(cells) + " |")
    return "\n".join(lines)
