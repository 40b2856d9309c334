"""Draws a report of benchmarks/collectives: for each case latency and bandwidth against size, every series a line.

python3 benchmarks/collectives/plot.py REPORT.json OUTPUT.svg; needs matplotlib.
"""

import json
import sys

OURS = ("runjob", "runjob-torch")
LIMITS = ("t_copy", "t_scale")


def styles(report):
    """{series: how its line looks}, the same in every case."""
    from matplotlib import pyplot

    names = dict.fromkeys(name for case in report["cases"] for name in case["results"] if name not in LIMITS)
    colours = pyplot.get_cmap("tab20").colors
    found = {"t_copy": {"linewidth": 1.2, "linestyle": ":", "color": "black"}, "t_scale": {"linewidth": 1.2, "linestyle": ":", "color": "grey"}}
    for number, name in enumerate([*OURS, *(name for name in names if name not in OURS)]):
        width = {"linewidth": 2.5, "marker": "o"} if name in OURS else {"linewidth": 1, "marker": "."}
        found[name] = {**width, "markersize": 4, "color": colours[2 * number % 20 + number // 10]}
    return found


def points(row):
    """(bytes, us) in order of size; a barrier, which has no size, has none."""
    return sorted((int(nbytes), cell["median_us"]) for nbytes, cell in row.items() if int(nbytes))


def drawable(report):
    """The cases with more than one size."""
    return [case for case in report["cases"] if any(len(points(row)) > 1 for row in case["results"].values())]


def draw(report, output):
    from matplotlib import pyplot

    cases = drawable(report)
    if not cases:
        sys.exit("plot: error: the report has no case with two sizes or more")
    style = styles(report)
    figure, axes = pyplot.subplots(len(cases), 2, figsize=(15, 5.5 * len(cases)), squeeze=False)
    for case, (latency, bandwidth) in zip(cases, axes):
        for name, row in case["results"].items():
            where = points(row)
            sizes = [nbytes for nbytes, _ in where]
            latency.plot(sizes, [time for _, time in where], label=name, **style[name])
            bandwidth.plot(sizes, [nbytes / time / 1000 for nbytes, time in where], label=name, **style[name])
        latency.set(title=case["title"], ylabel="time, us", yscale="log")
        bandwidth.set(title="bytes that each rank gives / time", ylabel="GB/s", yscale="log")
        for axis in (latency, bandwidth):
            axis.set_xscale("log", base=2)
            axis.set_xlabel("bytes that each rank gives")
            axis.grid(True, which="both", alpha=0.25)
        bandwidth.legend(fontsize="small", loc="center left", bbox_to_anchor=(1.01, 0.5))
    facts = report["machine"]
    figure.suptitle(f"{facts['cpu']}, {facts['cores']} cores, Linux {facts['kernel']}")
    figure.tight_layout(rect=(0, 0, 1, 0.985))
    figure.savefig(output)


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        draw(json.load(file), sys.argv[2])
