"""Launchers take turns, in an order that rotates, so that what else the machine does meets all of them alike."""

import statistics

SLOW_SECONDS = 1.0
SLOW_ROUNDS = 3  # a launcher that takes seconds needs no twenty samples to be told from one that takes milliseconds


def alternate(peers, rounds, once, seconds=lambda sample: sample):
    """{peer: [samples]}. `once(peer)` is one run; `seconds` of its result says how long that took."""
    samples = {peer.name: [] for peer in peers}
    for peer in peers:
        once(peer)  # the first one reads programs from the disk
    for turn in range(rounds):
        start = turn % len(peers)
        for peer in peers[start:] + peers[:start]:
            mine = samples[peer.name]
            if len(mine) < SLOW_ROUNDS or statistics.median(map(seconds, mine)) < SLOW_SECONDS:
                mine.append(once(peer))
    return samples


def summary(values):
    return {"median": statistics.median(values), "lowest": min(values), "highest": max(values), "runs": len(values)}


def table(first_column, rows, names):
    """Medians in ms and, of the first launcher, ratios. `rows`: {what the first column says: {name: median in s}}."""
    head = [first_column, *(f"{name}, ms" for name in names), *(f"{names[0]} / {name}" for name in names[1:])]
    lines = ["| " + " | ".join(head) + " |", "|" + "---:|" * len(head)]
    for label, medians in rows.items():
        cells = [f"{medians[name] * 1000:.1f}" for name in names]
        cells += [f"{medians[names[0]] / medians[name]:.2f}" for name in names[1:]]
        lines.append("| " + " | ".join([str(label), *cells]) + " |")
    return "\n".join(lines)
