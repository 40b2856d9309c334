"""Turns to figures: samples per second, ratios of turns that belong together, and how sure these are. Pure functions."""

import math
import statistics

CONFIDENCE = 0.95


def speed(batch, times_of_ranks):
    """Samples per second of all ranks, of each rank's step times."""
    return sum(batch * len(times) / sum(times) for times in times_of_ranks)


def interval(values, confidence=CONFIDENCE):
    """(lowest, highest) of a confidence interval of the median, from the values' order alone: no assumption about their distribution.

    The k-th lowest and the k-th highest of n values have the median between them with probability 1 - 2 P(B < k), B binomial (n, 1/2).
    Too few values for the confidence give the lowest and the highest.
    """
    ordered = sorted(values)
    count = len(ordered)
    below, k = 0.0, 0
    while k < count // 2:
        below += math.comb(count, k) / 2**count
        if 1 - 2 * below < confidence:
            break
        k += 1
    k = max(k, 1)
    return ordered[k - 1], ordered[-k]


def ratio(ours, theirs):
    """Of two lists of speeds, turn by turn: median and interval."""
    ratios = [a / b for a, b in zip(ours, theirs)]
    lowest, highest = interval(ratios)
    return {"median": statistics.median(ratios), "lowest": lowest, "highest": highest, "turns": ratios}


def results(speeds, ours):
    """{peer: speed, and the ratio of `ours` to it} of {peer: speeds by turn}."""
    return {
        name: {
            "samples_per_second": statistics.median(turns), "turns": turns,
            **({"ratio": ratio(speeds[ours], turns)} if name != ours and ours in speeds else {}),
        }
        for name, turns in speeds.items()
    }  # fmt: skip


def markdown(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def ratio_text(found):
    return f"{found['median']:.2f} ({found['lowest']:.2f} to {found['highest']:.2f})" if found else ""


def table(cases, ours):
    """One row for each case: the speeds, and the ratios of ours to the others'."""
    names = list(dict.fromkeys(name for case in cases for name in case["results"]))
    others = [name for name in names if name != ours]
    rows = []
    for case in cases:
        found = case["results"]
        speeds = [f"{found[name]['samples_per_second']:.1f}" if name in found else "" for name in names]
        ratios = [ratio_text(found.get(name, {}).get("ratio")) for name in others]
        rows.append([f"{case['model']}, np {case['np']}", *speeds, *ratios])
    return markdown(["samples/s", *names, *(f"{ours} / {name}" for name in others)], rows)


def memory_table(cases):
    names = list(dict.fromkeys(name for case in cases for name in case["memory"]))

    def text(found):
        return f"{found['VmHWM'] / 1024:.0f}, {found['Pss'] / 1024:.0f}" if found else ""

    rows = [[f"{case['model']}, np {case['np']}", *(text(case["memory"].get(name)) for name in names)] for case in cases]
    return markdown(["MiB of a rank: most resident, share", *names], rows)
