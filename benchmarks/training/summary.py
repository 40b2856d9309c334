"""Turns to figures: samples per second, ratios of turns that belong together, and how sure these are. Pure functions."""

import statistics

from runjob.benchmark import figures


def speed(batch, times_of_ranks):
    """Samples per second of all ranks, of each rank's step times."""
    return sum(batch * len(times) / sum(times) for times in times_of_ranks)


def pairs(speeds, names):
    """{"a / b": the ratio} of those pairs (a, b) of peers that have both trained, of {peer: speeds by turn}."""
    return {f"{one} / {other}": figures.ratio(speeds[one], speeds[other]) for one, other in names if one in speeds and other in speeds}


def results(speeds, ours):
    """{peer: speed, and the ratio of `ours` to it} of {peer: speeds by turn}."""
    return {
        name: {
            "samples_per_second": statistics.median(turns), "turns": turns,
            **({"ratio": figures.ratio(speeds[ours], turns)} if name != ours and ours in speeds else {}),
        }
        for name, turns in speeds.items()
    }  # fmt: skip


def table(cases, ours):
    """One row for each case: the speeds, and the ratios of ours to the others'."""
    names = list(dict.fromkeys(name for case in cases for name in case["results"]))
    others = [name for name in names if name != ours]
    paired = list(dict.fromkeys(name for case in cases for name in case.get("pairs", {})))
    rows = []
    for case in cases:
        found = case["results"]
        speeds = [f"{found[name]['samples_per_second']:.1f}" if name in found else "" for name in names]
        ratios = [figures.ratio_text(found[name]["ratio"]) if "ratio" in found.get(name, {}) else "" for name in others]
        more = [figures.ratio_text(case["pairs"][name]) if name in case.get("pairs", {}) else "" for name in paired]
        rows.append([f"{case['model']}, np {case['np']}", *speeds, *ratios, *more])
    return figures.markdown(["samples/s", *names, *(f"{ours} / {name}" for name in others), *paired], rows, words=1)


def memory_table(cases):
    names = list(dict.fromkeys(name for case in cases for name in case["memory"]))

    def text(found):
        return f"{found['VmHWM'] / 1024:.0f}, {found['Pss'] / 1024:.0f}" if found else ""

    rows = [[f"{case['model']}, np {case['np']}", *(text(case["memory"].get(name)) for name in names)] for case in cases]
    return figures.markdown(["MiB of a rank: most resident, share", *names], rows, words=1)
